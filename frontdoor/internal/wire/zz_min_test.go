package wire_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/frontdoor/internal/wire/table"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestMin(t *testing.T) {
	objects := pods(200)
	types, _ := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	tt, _ := types.Lookup("", "v1", "pods")
	m, err := protobuf.NewRegistry(vocabulary.Platform()).Find(wire.KindOf(tt))
	if err != nil {
		t.Fatal(err)
	}
	d := table.Define(tt.Columns, vocabulary.Platform())
	var buf []byte
	min := func(name string, f func()) {
		best := time.Hour
		for range 300 {
			s := time.Now()
			f()
			best = min(best, time.Since(s))
		}
		fmt.Printf("%s %.2f µs/object\n", name, best.Seconds()*1e6/200)
	}
	min("transcode", func() {
		for _, o := range objects {
			buf, _ = m.Append(buf[:0], o.JSON)
		}
	})
	min("struct", func() {
		for _, o := range objects {
			var p corev1.Pod
			_ = json.UnmarshalCaseSensitivePreserveInts(o.JSON, &p)
			buf, _ = p.Marshal()
		}
	})
	min("cells", func() {
		for _, o := range objects {
			_ = d.Cells(o.JSON)
		}
	})
	codec := wire.New(wire.Config{Vocabulary: vocabulary.Platform()})
	for _, c := range []struct {
		name string
		form wire.Form
	}{{"table", wire.Form{As: wire.Table, MetaVersion: "v1"}}, {"protobuf", wire.Form{Media: wire.Protobuf}}, {"partialpb", wire.Form{Media: wire.Protobuf, As: wire.Partial, MetaVersion: "v1"}}} {
		for _, hot := range []bool{false, true} {
			min(fmt.Sprint(c.name, hot), func() {
				list := codec.Encoder(c.form, tt).List(discard{http.Header{}})
				list.Begin(wire.ListMeta{Revision: 1})
				for _, o := range objects {
					if !hot {
						o.UID = ""
					}
					list.Item(o)
				}
				list.End()
			})
		}
	}
	fmt.Println(len(objects[0].JSON), len(buf))
}
