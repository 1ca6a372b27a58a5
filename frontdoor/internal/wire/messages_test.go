package wire

import (
	"cmp"
	"errors"
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

// listed writes a list of ConfigMaps, for which at most so many bytes are held, and returns the response and how
// often its items were written. change changes the items of the second time.
func listed(codec *Codec, most int, identified bool, change func(i int) int) (body string, times int, err error) {
	configMaps := &catalogue.Type{Version: "v1", Kind: "ConfigMap", ListKind: "ConfigMapList"}
	w := httptest.NewRecorder()
	l := codec.Encoder(Form{Media: Protobuf}, configMaps).List(w)
	l.(*messageList).most = most
	err = l.Begin(ListMeta{Revision: 9})
	items := func(size func(i int) int) {
		times++
		for i := 0; i < listItems && err == nil; i++ {
			o := services.Object{JSON: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%d"},"data":{"k":%q}}`, i, strings.Repeat("v", size(i)))}
			if identified {
				o.UID, o.Revision = fmt.Sprint("uid-", i), int64(i+1)
			}
			err = l.Item(o)
		}
	}
	items(func(i int) int { return 3 * i })
	again, failed := l.Again()
	if err = cmp.Or(err, failed); again {
		items(change)
	}
	if err == nil {
		err = l.End()
	}
	return w.Body.String(), times, err
}

const listItems = 300

// TestMessageList writes one list several times: without a cache, twice to fill it and from it, and without room for all of its
// messages, so that they are encoded twice.
func TestMessageList(t *testing.T) {
	same := func(i int) int { return 3 * i }
	held, _, err := listed(New(Config{Vocabulary: vocabulary.K8s()}), heldBytes, false, same)
	if err != nil {
		t.Fatal(err)
	}
	codec := New(Config{Vocabulary: vocabulary.K8s()})
	for _, x := range []struct {
		what       string
		most       int
		identified bool
		times      int
	}{{"kept", heldBytes, true, 1}, {"hot", heldBytes, true, 1}, {"too large", 10_000, false, 2}, {"much too large", 0, false, 2}} {
		got, times, err := listed(codec, x.most, x.identified, same)
		if err != nil || got != held || times != x.times {
			t.Errorf("a list of messages that are %s has %d bytes, written %d times (%v); want %d, %d times", x.what, len(got), times, err, len(held), x.times)
		}
	}
	for what, change := range map[string]func(i int) int{"more": func(i int) int { return 3*i + 1 }, "less": func(i int) int { return 2 * i }} {
		if _, _, err := listed(codec, 0, false, change); !errors.Is(err, errOtherList) {
			t.Errorf("a list that is %s when it is encoded again: %v", what, err)
		}
	}
	const items = listItems
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
