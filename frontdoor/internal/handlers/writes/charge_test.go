package writes

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestDecodingIsCharged: a write whose Protobuf body takes more than what is left of the user's share of
// memory is refused before the body is decoded.
func TestDecodingIsCharged(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	pod := field(2, bytes.Repeat(field(2, nil), 20_000)) // empty containers
	body := protobuf.AppendEnvelope(nil, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, pod)
	for _, x := range []struct {
		method, path string
		share, held  int64 // of the user, and what another request of the same user holds
		want         string
	}{
		{http.MethodPost, "/api/v1/namespaces/shop/pods", 64 << 20, 40 << 20, services.ReasonTooManyRequests},
		{http.MethodPut, "/api/v1/namespaces/shop/pods/p", 64 << 20, 40 << 20, services.ReasonTooManyRequests},
		{http.MethodPost, "/api/v1/namespaces/shop/pods", 64 << 20, 0, services.ReasonInvalid},
	} {
		r := httptest.NewRequestWithContext(t.Context(), x.method, x.path, bytes.NewReader(body))
		r.Header.Set("Content-Type", vocabulary.K8s().Protobuf)
		req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
		if _, err := req.Identify(c.engine); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		memory := ledger.New(4 * x.share)
		var other ledger.Hold
		if !other.Grow(memory, req.Owner(), x.held) {
			t.Fatal("the other request does not fit")
		}
		if err := req.Receive(w, memory); err != nil {
			t.Fatal(err)
		}
		if err := c.handlers.Write(w, req); !services.IsReason(err, x.want) {
			t.Errorf("%s with %d bytes left: %.200v, want %s", x.method, x.share, err, x.want)
		}
	}
}
