package changes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// TestUnreadableObjectsAreNotAbsent: what cannot be read is known to be there, while everything else is followed; a value
// that restricts stays, and one that permits does not. It is read again when that is possible.
func TestUnreadableObjectsAreNotAbsent(t *testing.T) {
	for _, keep := range []bool{false, true} {
		cluster := fake.New(t)
		things := resource.GroupResource{Group: "test.example", Resource: "things"}
		key := resource.Key{GroupResource: things, Namespace: "ns", Name: "a"}
		mirror := changes.NewMirror(changes.MirrorConfig[string]{Source: cluster.Source(), Store: cluster, GroupResource: things, Keep: keep,
			Decode: func(o services.Object) (string, error) {
				if len(o.JSON) < 60 {
					return "", errors.New("too short")
				}
				return o.Labels["value"], nil
			}})
		wait := func(revision int64) {
			t.Helper()
			if err := mirror.WaitFor(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
		}
		object := func(name, value string) string {
			return `{"metadata":{"name":"` + name + `","namespace":"ns","labels":{"value":"` + value + `"}}}`
		}
		cluster.Damage(resource.Key{GroupResource: things, Namespace: "ns", Name: "first"})
		cluster.Put(t, things, object("a", "one"))
		go func() { _ = mirror.Run(t.Context()) }()
		<-mirror.Ready()
		if err := mirror.Unreadable("ns"); !services.IsReason(err, services.ReasonUnreadable) || mirror.Unreadable("other") != nil || len(mirror.List("")) != 1 {
			t.Fatalf("at first: %v, %v", err, mirror.List(""))
		}
		cluster.Put(t, things, object("first", "readable"))
		wait(cluster.Damage(key))
		value, held := mirror.Get("ns", "a")
		if err := mirror.Now().Err(key); err == nil || held != keep || keep && value != "one" || (mirror.Unreadable("") == nil) != keep {
			t.Errorf("keep=%v: %q, %v, %v, %v", keep, value, held, err, mirror.Unreadable(""))
		}
		wait(cluster.Put(t, things, object("b", "other")))
		if value, _ := mirror.Get("ns", "b"); value != "other" || len(mirror.Now().Unread("")) != 1 {
			t.Errorf("keep=%v: other objects are not followed", keep)
		}
		wait(cluster.Put(t, things, object("a", "two")))
		if value, _ := mirror.Get("ns", "a"); value != "two" || mirror.Now().Err(key) != nil {
			t.Errorf("keep=%v: not read again: %q", keep, value)
		}
		wait(cluster.Put(t, things, `{"metadata":{"name":"a","namespace":"ns"}}`))
		if _, held := mirror.Get("ns", "a"); held != keep || mirror.Now().Err(key) == nil {
			t.Errorf("keep=%v: what cannot be decoded is taken for absent", keep)
		}
		wait(cluster.Delete(key))
		if _, held := mirror.Get("ns", "a"); held || mirror.Now().Err(key) != nil {
			t.Errorf("keep=%v: it is deleted and still there", keep)
		}
		revision := cluster.Damage(key)
		wait(revision)
		cluster.Repair(services.Object{Key: key, Revision: revision, JSON: []byte(object("a", "back")), Labels: map[string]string{"value": "back"}})
		for until := time.Now().Add(20 * time.Second); mirror.Now().Err(key) != nil; <-time.After(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("what can be read again is not")
			}
		}
		if value, _ := mirror.Get("ns", "a"); value != "back" {
			t.Errorf("keep=%v: got %q", keep, value)
		}
	}
}
