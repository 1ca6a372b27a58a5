package store

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
)

// damages are values of etcd that are not the object of their key, made of the value that is.
func damages(value []byte) map[string][]byte {
	end := bytes.IndexByte(value, '\n') + 1
	return map[string][]byte{
		"garbage":       []byte("garbage"),
		"empty":         {},
		"truncated":     value[:len(value)-3],
		"only a header": value[:end],
		"more":          append(bytes.Clone(value), "}"...),
		"bit":           bytes.Replace(value, []byte(`"spec":`), []byte(`"spec";`), 1),
		"other name":    bytes.Replace(value, []byte(`"name":"bad"`), []byte(`"name":"bed"`), 1),
		"other type":    bytes.Replace(value, []byte(`{"metadata"`), []byte(`{"kind":"ConfigMap","metadata"`), 1),
		"later version": bytes.Replace(value, []byte(`{"metadata"`), []byte(`{"apiVersion":"v7","metadata"`), 1),
		"encrypted":     []byte(atrest.Prefix + "aesgcm:v1:gone:bytes"),
		"plain":         value[end:],
	}
}

func putRaw(t *testing.T, client *clientv3.Client, key resource.Key, value []byte) int64 {
	t.Helper()
	put, err := client.Put(t.Context(), key.Path(), string(value))
	if err != nil {
		t.Fatal(err)
	}
	return put.Header.Revision
}

// TestUnreadableIsNotAbsent: whatever is wrong with a value, its object and lists that include it are errors that name it,
// before and after a restart, and all other objects are served. It can be replaced and deleted by who knows its revision.
func TestUnreadableIsNotAbsent(t *testing.T) {
	client := openEtcd(t)
	s := replica(t, client)
	good := create(t, s, "good")
	value := raw(t, client, create(t, s, "bad").Key)
	bad := pod("bad")
	for name, damaged := range damages(value) {
		t.Run(name, func(t *testing.T) {
			revision := putRaw(t, client, bad, damaged)
			for when, s := range map[string]*Store{"running": s, "started": replica(t, client)} {
				isUnreadable(t, when, s, bad, revision)
				if _, err := get(t, s, good.Key); err != nil {
					t.Errorf("%s: another object: %v", when, err)
				}
			}
			repaired, err := s.Update(t.Context(), services.UpdateRequest{Key: bad, Revision: revision, Content: content("bad", "1")})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := get(t, s, bad); err != nil || got.Revision != repaired.Revision || len(s.main.mirror.Unreadable()) > 0 {
				t.Errorf("repaired: %+v, %v", got, err)
			}
			revision = putRaw(t, client, bad, damaged)
			for _, r := range []services.DeleteRequest{{Key: bad}, {Key: bad, UID: "uid"}, {Key: bad, Revision: revision - 1}} {
				if _, err := s.Delete(t.Context(), r); !services.IsReason(err, services.ReasonUnreadable) && !services.IsConflict(err) {
					t.Errorf("deleting %+v: %v", r, err)
				}
			}
			if gone, err := s.Delete(t.Context(), services.DeleteRequest{Key: bad, Revision: revision}); err != nil || gone.Key != bad {
				t.Errorf("deleted %+v, %v", gone, err)
			}
			if page := list(t, s, services.ListRequest{}); len(page.Objects) != 1 || len(s.main.mirror.Unreadable()) > 0 {
				t.Errorf("after the deletion: %d objects", len(page.Objects))
			}
		})
	}
}

// isUnreadable checks how a store answers while a pod cannot be read.
func isUnreadable(t *testing.T, when string, s *Store, bad resource.Key, revision int64) {
	t.Helper()
	_, err := get(t, s, bad)
	if at, ok := services.UnreadableRevision(err); !ok || at != revision || services.AsStatus(err).Code != http.StatusInternalServerError || !strings.Contains(err.Error(), bad.String()) {
		t.Errorf("%s: get: %v", when, err)
	}
	for what, r := range map[string]services.ListRequest{"all": {}, "namespace": {Namespace: "default"}, "selector": {LabelSelector: "a=b"},
		"name": {FieldSelector: "metadata.name=bad"}, "revision": {Read: exactly(revision)}} {
		r.GroupResource = pods
		if _, err := s.List(t.Context(), r); !services.IsReason(err, services.ReasonUnreadable) {
			t.Errorf("%s: list of %s: %v", when, what, err)
		}
		if r.WithUnreadable = true; what == "selector" || what == "name" {
			continue
		}
		page, err := s.List(t.Context(), r)
		if err != nil || len(page.Objects) != 2 || page.Objects[0].Key != bad || page.Objects[0].Unreadable == "" || page.Objects[1].Unreadable != "" {
			t.Errorf("%s: list of %s with it: %+v, %v", when, what, page, err)
		}
	}
	for what, r := range map[string]services.ListRequest{"another namespace": {Namespace: "other"}, "another name": {FieldSelector: "metadata.name=good"}} {
		r.GroupResource = pods
		if _, err := s.List(t.Context(), r); err != nil {
			t.Errorf("%s: list of %s: %v", when, what, err)
		}
	}
	all, err := s.List(t.Context(), services.ListRequest{WithUnreadable: true})
	if named := services.NameUnreadable(all); err != nil || named == nil || !strings.HasPrefix(named.Error(), "1 stored objects cannot be read; "+bad.String()) {
		t.Errorf("%s: of all types: %v, %v", when, named, err)
	}
	want := `# HELP portico_store_unreadable_objects Objects whose value in etcd cannot be read, by type: it cannot be decrypted, is damaged, or of a later release.
# TYPE portico_store_unreadable_objects gauge
portico_store_unreadable_objects{group="",resource="pods"} 1
`
	if err := testutil.CollectAndCompare(newUnreadableMetric(s.main.mirror), strings.NewReader(want)); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// TestNothingUnreadableIsStored: what could not be read again is refused.
func TestNothingUnreadableIsStored(t *testing.T) {
	s := replica(t, openEtcd(t))
	for _, object := range []string{`{"metadata":{"name":"b","namespace":"default"}}`, `{"kind":"Secret","metadata":{"name":"a"}}`,
		`{"apiVersion":"v3","metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}`, `{"metadata":{"name":"a"}}}`, `{"metadata":{"name":"a"},"x":"` + "\n" + `"}`} {
		_, err := s.Create(t.Context(), services.CreateRequest{Key: pod("a"), Content: services.Content{JSON: []byte(object)}})
		if !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%s: %v", object, err)
		}
	}
}

// TestManyUnreadable: lists end, and the number of objects that are named is bounded.
func TestManyUnreadable(t *testing.T) {
	client := openEtcd(t)
	for n := range 600 {
		putRaw(t, client, pod(fmt.Sprintf("p%03d", n)), []byte("garbage"))
	}
	s := replica(t, client)
	if _, err := s.List(t.Context(), services.ListRequest{GroupResource: pods}); !services.IsReason(err, services.ReasonUnreadable) {
		t.Error(err)
	}
	all, err := s.List(t.Context(), services.ListRequest{WithUnreadable: true})
	if err != nil || len(all.Objects) != pageObjects || all.Remaining != 100 {
		t.Errorf("%d objects and %d more, %v", len(all.Objects), all.Remaining, err)
	}
	if text := services.NameUnreadable(all).Error(); !strings.HasPrefix(text, "600 ") || strings.Count(text, ";") != services.NamedUnreadable {
		t.Error(text)
	}
}
