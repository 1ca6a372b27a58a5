package wire

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestMessageList writes one list three times: the first two times its messages are
// encoded, the third time they are in the cache.
func TestMessageList(t *testing.T) {
	codec := New(Config{Vocabulary: vocabulary.K8s()})
	configMaps := &catalogue.Type{Version: "v1", Kind: "ConfigMap", ListKind: "ConfigMapList"}
	const items = 300
	write := func(identified bool) string {
		w := httptest.NewRecorder()
		l := codec.Encoder(Form{Media: Protobuf}, configMaps).List(w)
		err := l.Begin(ListMeta{Revision: 9})
		for i := 0; i < items && err == nil; i++ {
			o := services.Object{JSON: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%d"},"data":{"k":%q}}`, i, strings.Repeat("v", i*3))}
			if identified {
				o.UID, o.Revision = fmt.Sprint("uid-", i), int64(i+1)
			}
			err = l.Item(o)
		}
		if err == nil {
			err = l.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		return w.Body.String()
	}
	held := write(false)
	for _, what := range []string{"kept", "hot"} {
		if got := write(true); got != held {
			t.Errorf("a list of messages that are %s has %d bytes, want %d", what, len(got), len(held))
		}
	}
	envelope, err := protobuf.OpenEnvelope([]byte(held))
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := list.Unmarshal(envelope.Raw); err != nil || len(list.Items) != items || list.ResourceVersion != "9" {
		t.Errorf("%d items at %s: %v", len(list.Items), list.ResourceVersion, err)
	}
	for i, item := range list.Items {
		if item.Name != fmt.Sprint("c", i) || len(item.Data["k"]) != 3*i {
			t.Errorf("item %d is %s with %d bytes", i, item.Name, len(item.Data["k"]))
		}
	}
}
