package decoded

import (
	"bytes"
	"reflect"
	"testing"
	"unsafe"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

func value(t *testing.T, key resource.Key, uid string) []byte {
	t.Helper()
	object := []byte(`{"metadata":{"name":"` + key.Name + `"}}`)
	at, err := tree.MetadataOffset(object)
	if err != nil {
		t.Fatal(err)
	}
	return resource.EncodeRecord(resource.Record{UID: uid, Labels: map[string]string{"app": uid}, At: at, JSON: object})
}

// TestReadersShare: whoever decodes the same bytes second gets the object of the first. Other bytes
// are decoded, also at the same revision: etcd may have been restored.
func TestReadersShare(t *testing.T) {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "ns", Name: "a"}
	decode := func(value []byte, revision int64) (uid string, at *byte) {
		t.Helper()
		o, _, err := Object(nil, Value{key.Path(), key, value, revision})
		if err != nil || o.Key != key || o.Revision != revision || !bytes.Contains(o.JSON, []byte(`"resourceVersion":"`+resource.FormatResourceVersion(revision)+`"`)) {
			t.Fatalf("%+v, %v", o, err)
		}
		if want := map[string]string{"app": o.UID}; !reflect.DeepEqual(o.Labels, want) {
			t.Errorf("labels %v, want %v", o.Labels, want)
		}
		return o.UID, unsafe.SliceData(o.JSON)
	}
	one, other := value(t, key, "u-1"), value(t, key, "u-2")
	_, first := decode(one, 7)
	if _, second := decode(one, 7); second != first {
		t.Error("the second reader has a copy")
	}
	if _, third := decode(one, 7); third == first {
		t.Error("the value is kept although both readers have it")
	}
	decode(one, 9)
	if uid, _ := decode(other, 9); uid != "u-2" {
		t.Errorf("got the object %s of another value", uid)
	}
	if uid, _ := decode(bytes.Clone(one), 9); uid != "u-1" {
		t.Errorf("got the object %s of another value", uid)
	}
	decode(one, 10)
	decode(one, 10+kept) // at the same place, as in a deletion long after
	if _, _, err := Object(nil, Value{key.Path(), key, []byte("damaged"), 11}); err == nil {
		t.Error("a damaged value was decoded")
	}
}
