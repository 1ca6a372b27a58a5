package wire_test

import (
	"bytes"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestConcurrentRequests serves many requests at once from one Codec; each response is the
// same as when it is alone.
func TestConcurrentRequests(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	forms := []wire.Form{{}, {Pretty: true}, {Media: wire.YAML}, {Media: wire.Protobuf}, {As: wire.Table, MetaVersion: "v1"}, {As: wire.Partial, MetaVersion: "v1", Media: wire.Protobuf}}
	want := make([][]byte, len(forms))
	for i, form := range forms {
		want[i] = list(t, newCodec(vocabulary.Platform()).Encoder(form, configMaps), wire.ListMeta{Revision: 3}, 150)
	}
	var all sync.WaitGroup
	for n := range 48 {
		all.Go(func() {
			i := n % len(forms)
			w := httptest.NewRecorder()
			l := codec.Encoder(forms[i], configMaps).List(w)
			err := l.Begin(wire.ListMeta{Revision: 3})
			for item := 0; item < 150 && err == nil; item++ {
				err = l.Item(configMap(itemName(item), int64(item+1)))
			}
			if err == nil {
				err = l.End()
			}
			if err != nil || !bytes.Equal(w.Body.Bytes(), want[i]) {
				t.Errorf("%+v: %d bytes, want %d: %v", forms[i], w.Body.Len(), len(want[i]), err)
			}
		})
	}
	all.Wait()
}
