package e2e

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// ofEvents is the name of the etcd that stores Events.
const ofEvents = "etcd-of-events"

// startOverride starts the etcd of Events and returns the flag of the services that use it.
func (s *suite) startOverride(t *testing.T) (flag string) {
	t.Helper()
	s.add(t, ofEvents, ofEvents)
	s.overrideData = t.TempDir()
	files := s.issue(t, ofEvents, ofEvents, "127.0.0.1")
	s.runOverride = func() {
		s.processes[ofEvents] = spawn(t, s.logs, filepath.Join(s.bin, "etcd"), "-dir", s.overrideData, "-address", s.addresses[ofEvents], "-ca", files.CA, "-cert", files.Cert, "-key", files.Key)
	}
	s.runOverride()
	return "--etcd-servers-overrides=/events#https://" + s.addresses[ofEvents]
}

const eventsPath = "/api/v1/namespaces/default/events"

func eventNamed(name string) cluster.Request {
	return post(eventsPath, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"`+name+`"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tested"}`)
}

// overrideAway: while the etcd of Events is frozen or gone, requests for Events get 503 and everything else
// goes on; afterwards nothing is lost, and watches go on.
func overrideAway(t *testing.T, s *suite, c *cluster.Cluster) {
	ok(t, c, eventNamed("before"))
	revisions := func(path string) string {
		var list metav1.List
		ok(t, c, cluster.Request{Path: path + "?limit=1"}).Decode(t, &list)
		return list.ResourceVersion
	}
	if of, others := revisions(eventsPath), revisions("/api/v1/namespaces/default/configmaps"); len(of) >= len(others) && of >= others {
		t.Errorf("the revision of Events is %s, that of others %s", of, others)
	}
	etcd := s.processes[ofEvents]
	for _, fault := range []struct {
		name       string
		begin, end func() error
	}{
		{"frozen", func() error { return etcd.cmd.Process.Signal(syscall.SIGSTOP) }, func() error { return etcd.cmd.Process.Signal(syscall.SIGCONT) }},
		{"gone", func() error { etcd.kill(); return nil }, func() error { s.runOverride(); return nil }},
	} {
		since := revisions(eventsPath)
		if err := fault.begin(); err != nil {
			t.Fatal(err)
		}
		within(t, patience, "requests for Events are refused", func() bool {
			return c.Ask(t, cluster.Request{Path: eventsPath}).Code == http.StatusServiceUnavailable && c.Ask(t, eventNamed(fault.name)).Code == http.StatusServiceUnavailable
		})
		ok(t, c, post("/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"while-`+fault.name+`"}}`))
		ok(t, c, cluster.Request{Path: "/api/v1/namespaces/default/configmaps"})
		ok(t, c, cluster.Request{Path: "/readyz"})
		if err := fault.end(); err != nil {
			t.Fatal(err)
		}
		within(t, patience, "Events are written again", func() bool {
			code := c.Ask(t, eventNamed("after-"+fault.name)).Code
			return code == http.StatusCreated || code == http.StatusConflict
		})
		ok(t, c, cluster.Request{Path: eventsPath + "/before"})
		watched, err := c.Client(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: since})
		if err != nil {
			t.Fatal(err)
		}
		for seen := ""; seen != "after-"+fault.name; {
			event, open := <-watched.ResultChan()
			if !open {
				t.Fatalf("the watch ended after %q", seen)
			}
			if object, ok := event.Object.(metav1.Object); ok {
				seen = object.GetName()
			}
		}
		watched.Stop()
	}
}
