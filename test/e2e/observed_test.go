package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

const openWatches = "/debug/portico/v1/watches"

// seenWatches is what an administrator sees of the watches of all front doors.
type seenWatches struct {
	Items      []struct{ ID, FrontDoor, User, LabelSelector string }
	FrontDoors []struct{ Instance, Address, Error string }
}

func seen(t *testing.T, c *cluster.Cluster) (list seenWatches) {
	t.Helper()
	answer := c.Ask(t, cluster.Request{Path: openWatches + "?limit=1000"})
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Code, answer.Body)
	}
	answer.Decode(t, &list)
	return list
}

// observed shows and closes the watches of every front door at the first one, with the rights of
// the caller. Objects that users write name no front doors.
func observed(t *testing.T, doors ...*cluster.Cluster) {
	first, last := doors[0], doors[len(doors)-1]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	response, err := last.Send(ctx, cluster.Request{Path: "/api/v1/configmaps?watch=true&labelSelector=seen%3Dfrom-afar"})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	const forged = "192.0.2.7"
	api := "/api/v1/namespaces/default/endpoints/" + first.Vocabulary.APIService
	if got := first.Ask(t, cluster.Request{Method: "PATCH", Path: api, Type: "application/merge-patch+json",
		Body: `{"subsets":[{"addresses":[{"ip":"` + forged + `"}],"ports":[{"name":"https","port":6443}]}]}`}); got.Code != http.StatusOK {
		t.Fatal(got.Code, got.Body)
	}
	var id, instance string
	within(t, patience, "the watch is listed", func() bool {
		list := seen(t, first)
		for _, w := range list.Items {
			if w.LabelSelector == "seen=from-afar" {
				id, instance = w.ID, w.FrontDoor
			}
		}
		for _, d := range list.FrontDoors {
			if strings.Contains(d.Address, forged) {
				t.Errorf("%+v was forged", d)
			}
		}
		return id != "" && len(list.FrontDoors) == len(doors)
	})
	if list := seen(t, first); (list.FrontDoors[0].Instance == instance) != (len(doors) == 1) {
		t.Errorf("the watch is at %s of %+v", instance, list.FrontDoors)
	}
	for _, method := range []string{"GET", "DELETE"} {
		path := map[string]string{"GET": openWatches, "DELETE": openWatches + "/" + id}[method]
		if got := first.Ask(t, cluster.Request{Method: method, Path: path, Header: http.Header{"Impersonate-User": {"jane"}}}); got.Code != http.StatusForbidden {
			t.Errorf("%s by a user without rights: %d %s", method, got.Code, got.Body)
		}
	}
	within(t, patience, "the watch is closed", func() bool { // on a busy machine an answer can come too late
		got := first.Ask(t, cluster.Request{Method: "DELETE", Path: openWatches + "/" + id})
		if got.Code != http.StatusOK && got.Code != http.StatusServiceUnavailable && got.Code != http.StatusNotFound {
			t.Fatal(got.Code, got.Body)
		}
		return got.Code != http.StatusServiceUnavailable
	})
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Errorf("the watch did not end as if it were complete: %v", err)
	}
}

// observedDeath: a front door that was killed is named, and its watches are not shown.
func observedDeath(t *testing.T, s *suite, first *cluster.Cluster, victim string) {
	s.processes[victim].kill()
	for _, d := range seen(t, first).FrontDoors[1:] {
		if d.Error == "" {
			t.Errorf("%s is dead: %+v", victim, d)
		}
	}
}
