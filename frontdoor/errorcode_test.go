package frontdoor

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestErrorsWithoutHTTPCode: an error whose code is not an HTTP error status gets a
// response instead of a closed connection.
func TestErrorsWithoutHTTPCode(t *testing.T) {
	d := &door{log: slog.New(slog.DiscardHandler), vocabulary: vocabulary.K8s(), codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()})}
	for code, want := range map[int32]int{-1: 500, 0: 500, 99: 500, 200: 500, 399: 500, 400: 400, 418: 418, 599: 599, 600: 500, 1000: 500, 1 << 30: 500} {
		recorder := httptest.NewRecorder()
		r := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil)}
		d.renderError(&answer{ResponseWriter: recorder}, r, &services.Status{Code: code, Message: "a"})
		if recorder.Code != want {
			t.Errorf("%d: got %d, want %d", code, recorder.Code, want)
		}
	}
}

// TestErrorsNameTheGroupOfTheRequest: an event that is missing is one of the group that was
// requested, although groups share events.
func TestErrorsNameTheGroupOfTheRequest(t *testing.T) {
	d := &door{log: slog.New(slog.DiscardHandler), vocabulary: vocabulary.K8s(), codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()})}
	recorder := httptest.NewRecorder()
	r := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil),
		Type: &catalogue.Type{Group: "events.k8s.io", Resource: "events", Key: resource.GroupResource{Resource: "events"}}}
	d.renderError(&answer{ResponseWriter: recorder}, r, services.NotFound("", "events", "a"))
	if body := recorder.Body.String(); !strings.Contains(body, `"group":"events.k8s.io"`) {
		t.Error(body)
	}
}
