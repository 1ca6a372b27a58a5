package protobuf_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// part appends a field that is a message or text.
func part(dst []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), value)
}

func messagesOf(t *testing.T, group, version, kind string) *protobuf.Message {
	t.Helper()
	m, err := protobuf.NewRegistry(vocabulary.K8s()).Find(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManyEmptyMessages: a list of empty messages, two bytes each, is refused before it takes hundreds of
// times its size.
func TestManyEmptyMessages(t *testing.T) {
	const most = 3 << 20
	for _, c := range []struct {
		kind  string
		spec  protowire.Number // field of the object
		field protowire.Number // list in it
	}{{"Pod", 2, 2}, {"Pod", 2, 1}, {"Pod", 1, 13}, {"ReplicationController", 2, 3}, {"PodList", 2, 2}, {"Endpoints", 2, 1}} {
		inner := bytes.Repeat(part(nil, c.field, nil), most/2-16)
		if c.kind == "ReplicationController" { // in its template
			inner = part(nil, 3, part(nil, 2, bytes.Repeat(part(nil, 2, nil), most/2-32)))
		}
		body := part(nil, c.spec, inner)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := messagesOf(t, "", "v1", c.kind).Decode(body, nil)
		runtime.ReadMemStats(&after)
		if !services.IsReason(err, services.ReasonRequestEntityTooLarge) {
			t.Errorf("%s %d.%d: %v", c.kind, c.spec, c.field, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%s %d.%d: took %d MiB", c.kind, c.spec, c.field, took>>20)
		}
	}
}

// TestDeepMessages: a type that contains itself may be nested as deeply as JSON. Without a limit the stack
// overflows, which ends the process.
func TestDeepMessages(t *testing.T) {
	const not protowire.Number = 28
	var heads [][]byte
	for size := 0; size < 3<<20-64; {
		head := protowire.AppendVarint(protowire.AppendTag(nil, not, protowire.BytesType), uint64(size))
		heads, size = append(heads, head), size+len(head)
	}
	var nested []byte
	for i := len(heads) - 1; i >= 0; i-- {
		nested = append(nested, heads[i]...)
	}
	version := part(part(nil, 1, []byte("v1")), 4, part(nil, 1, nested))
	body := part(nil, 2, part(nil, 7, version))
	_, err := messagesOf(t, "apiextensions.k8s.io", "v1", "CustomResourceDefinition").Decode(body, nil)
	var deep tree.DepthError
	if !errors.As(err, &deep) {
		t.Errorf("%d levels: %v", len(heads), err)
	}
}

// TestLargeMessages: objects that are as large as a body may be are decoded.
func TestLargeMessages(t *testing.T) {
	const most = 3 << 20
	of := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < most; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for kind, object := range map[string]string{
		"ConfigMap": `{"data":{` + of(`"k%d":"some value"`) + `}}`,
		"Endpoints": `{"subsets":[{"addresses":[` + of(`{"ip":"10.1.2.3","nodeName":"n%d","targetRef":{"kind":"Pod","name":"p","uid":"u"}}`) + `]}]}`,
		"Pod":       `{"spec":{"containers":[{"name":"a","env":[` + of(`{"name":"E%d","value":"v"}`) + `]}]}}`,
		"Secret":    `{"data":{` + of(`"k%d":"AAAA"`) + `}}`,
	} {
		m := messagesOf(t, "", "v1", kind)
		message, err := m.Append(nil, []byte(object))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Decode(message, nil); err != nil {
			t.Errorf("%s of %d bytes: %v", kind, len(message), err)
		}
	}
}

// TestDecodingIsCharged: before a message is decoded, the request is charged for what that takes, also
// for messages of a few kilobytes.
func TestDecodingIsCharged(t *testing.T) {
	errShare := errors.New("too much")
	m := messagesOf(t, "", "v1", "Pod")
	containers := func(count int) []byte { return part(nil, 2, bytes.Repeat(part(nil, 2, nil), count)) }
	for what, body := range map[string][]byte{
		"few containers":  containers(3 << 10),
		"more containers": containers(30 << 10),
		"many containers": containers(60 << 10),
		"groups":          part(nil, 2, part(nil, 14, bytes.Repeat([]byte{4 << 3, 1}, 500_000))),
		"packed groups":   part(nil, 2, part(nil, 14, part(nil, 4, bytes.Repeat([]byte{1}, 500_000)))),
	} {
		charged := 0
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		object, err := m.Decode(body, func(n int) error { charged += n; return nil })
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int(after.HeapAlloc) - int(before.HeapAlloc); err != nil || charged < kept/2 {
			t.Errorf("%s: charged %d KiB, and %d are kept, %v", what, charged>>10, kept>>10, err)
		}
		runtime.KeepAlive(object)
		runtime.ReadMemStats(&before)
		_, err = m.Decode(body, func(int) error { return errShare })
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errShare) || took > 64<<10 {
			t.Errorf("%s: refused with %v after %d KiB", what, err, took>>10)
		}
	}
	pod, err := m.Append(nil, []byte(`{"spec":{"containers":[{"name":"a","image":"b"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Decode(pod, func(int) error { return errShare }); err != nil {
		t.Errorf("a small pod: %v", err)
	}
}
