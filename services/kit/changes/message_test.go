package changes

import (
	"reflect"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

func TestSubject(t *testing.T) {
	for want, gr := range map[string]resource.GroupResource{
		"changes.core.pods":            {Resource: "pods"},
		"changes.test_example.things":  things,
		"changes._test_example.things": {Group: things.Group, Resource: things.Resource, Custom: true},
	} {
		if got := Subject(gr); got != want {
			t.Errorf("subject of %v is %s, want %s", gr, got, want)
		}
	}
}

func TestMessageKeepsChanges(t *testing.T) {
	key := resource.Key{GroupResource: things, Namespace: "ns", Name: "a"}
	want := []services.Change{
		{Type: services.Added, Previous: 3, Object: services.Object{Key: key, Revision: 4, UID: "u", JSON: []byte(`{}`)}},
		{Type: services.Modified, Previous: 4, Object: services.Object{Key: key, Revision: 7, UID: "u", JSON: []byte(`{"a":1}`),
			Labels: map[string]string{"new": "1"}, Fields: map[string]string{"f": "2"}},
			OldLabels: map[string]string{"old": "1"}, OldFields: map[string]string{"f": "1"}, OldJSON: []byte(`{"a":0}`)},
		{Type: services.Deleted, Previous: 7, Object: services.Object{Key: key, Revision: 8, JSON: []byte(`{}`)}},
	}
	var message []byte
	for _, c := range want {
		var err error
		if message, err = AppendChange(message, c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := decodeChanges(message)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for n := 1; n < len(message); n++ {
		if cut, err := decodeChanges(message[:n]); err == nil && len(cut) == len(want) {
			t.Errorf("the first %d bytes pass for the whole message", n)
		}
	}
}

func FuzzMessage(f *testing.F) {
	message, err := AppendChange(nil, services.Change{Type: services.Added, Object: services.Object{Revision: 1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Add([]byte("\x0a\x05short"))
	f.Fuzz(func(t *testing.T, message []byte) {
		changes, err := decodeChanges(message)
		if err != nil && len(changes) > 0 {
			t.Error("changes beside an error")
		}
	})
}
