package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const flowControl = "/apis/flowcontrol.apiserver.k8s.io/v1beta1/"

// TestFairSharesAndEvents: a FlowSchema decides about requests as soon as it is stored, watchers see
// Events expire, and a user has a share of watches.
func TestFairSharesAndEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the suite")
	}
	t.Parallel()
	a := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.21", "--event-ttl=2s", fmt.Sprintf("--max-watches-per-user=%d", watchShare))
	t.Run("events", func(t *testing.T) { expireEvents(t, a.Cluster) })
	t.Run("flows", func(t *testing.T) { followFlows(t, a.Cluster) })
	t.Run("watches", func(t *testing.T) { shareWatches(t, a.Cluster) })
}

func expireEvents(t *testing.T, c *cluster.Cluster) {
	watched, err := c.Client(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	for _, name := range []string{"a", "b", "c"} {
		ok(t, c, post("/api/v1/namespaces/default/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"`+name+
			`"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tested"}`))
	}
	ok(t, c, post("/apis/events.k8s.io/v1/namespaces/default/events", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"d"},
		"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"example.com/tests","reportingInstance":"tests-0","action":"Testing","type":"Normal",
		"regarding":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tested"}`))
	for seen := map[watch.EventType]int{}; seen[watch.Deleted] < 4; {
		event, open := <-watched.ResultChan()
		if !open {
			t.Fatalf("the watch ended after %v", seen)
		}
		seen[event.Type]++
	}
}

func followFlows(t *testing.T, c *cluster.Cluster) {
	jane := http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:authenticated"}}
	uidOf := func(path string) string {
		object, err := tree.Decode([]byte(ok(t, c, cluster.Request{Path: flowControl + path}).Body))
		if err != nil {
			t.Fatal(err)
		}
		return tree.Text(object, "metadata", "uid")
	}
	classified := func() (flow, level string) {
		h := c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/default/pods", Header: jane}).Header // 403: refused requests have no class
		if h.Get("X-Kubernetes-PF-FlowSchema-UID") != "" {
			t.Error("a request that is not authorized was classified")
		}
		h = ok(t, c, cluster.Request{Path: "/version", Header: jane}).Header
		return h.Get("X-Kubernetes-PF-FlowSchema-UID"), h.Get("X-Kubernetes-PF-PriorityLevel-UID")
	}
	if flow, level := classified(); flow != uidOf("flowschemas/global-default") || level != uidOf("prioritylevelconfigurations/global-default") {
		t.Errorf("at first a request is in %s of %s", flow, level)
	}
	ok(t, c, post(flowControl+"flowschemas", `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1beta1","kind":"FlowSchema","metadata":{"name":"of-jane"},"spec":{
		"matchingPrecedence":40,"priorityLevelConfiguration":{"name":"own"},"rules":[{"subjects":[{"kind":"User","user":{"name":"jane"}}],
		"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/version"]}]}]}}`))
	eventually(t, "the level is missing", func() bool {
		return strings.Contains(ok(t, c, cluster.Request{Path: flowControl + "flowschemas/of-jane"}).Body, `but there is no such object`)
	})
	ok(t, c, post(flowControl+"prioritylevelconfigurations", `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1beta1","kind":"PriorityLevelConfiguration",
		"metadata":{"name":"own"},"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":5,"limitResponse":{"type":"Reject"}}}}`))
	eventually(t, "the request is in its own flow", func() bool {
		flow, level := classified()
		return flow == uidOf("flowschemas/of-jane") && level == uidOf("prioritylevelconfigurations/own")
	})
	const dump = "/debug/api_priority_and_fairness/dump_priority_levels"
	if body := ok(t, c, cluster.Request{Path: dump}).Body; !strings.Contains(body, "\nown,") {
		t.Errorf("the level is not among\n%s", body)
	}
	if got := c.Ask(t, cluster.Request{Path: dump, Header: jane}); got.Code != http.StatusForbidden {
		t.Errorf("any user reads the levels: %d", got.Code)
	}
}

// watchShare is --max-watches-per-user: more than the watches of the suite's own workers.
const watchShare = 200

// shareWatches: a user opens its share of watches. The next one gets 429 with Retry-After until another has ended, and
// neither its other requests nor other users notice.
func shareWatches(t *testing.T, c *cluster.Cluster) {
	ok(t, c, post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
		"metadata":{"name":"watchers"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"watchers"}]}`))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	as := func(user string) http.Header {
		return http.Header{"Impersonate-User": {user}, "Impersonate-Group": {"watchers", "system:authenticated"}}
	}
	const configMaps = "/api/v1/namespaces/default/configmaps"
	open := func(ctx context.Context, header http.Header) *http.Response {
		answer, err := c.Send(ctx, cluster.Request{Path: configMaps + "?watch=1", Header: header})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	one, endOne := context.WithCancel(ctx)
	eventually(t, "the user may watch", func() bool { // then the first watch is open
		return open(one, as("greedy")).StatusCode == http.StatusOK
	})
	for n := 1; n < watchShare; n++ {
		if code := open(ctx, as("greedy")).StatusCode; code != http.StatusOK {
			t.Fatalf("watch %d: %d", n, code)
		}
	}
	if answer := open(ctx, as("greedy")); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("one watch more: %d with %v", answer.StatusCode, answer.Header)
	}
	ok(t, c, cluster.Request{Path: configMaps, Header: as("greedy")})
	if code := open(ctx, as("modest")).StatusCode; code != http.StatusOK {
		t.Errorf("another user: %d", code)
	}
	for n := range watchShare + 1 {
		if code := open(ctx, nil).StatusCode; code != http.StatusOK {
			t.Fatalf("watch %d of the administrator: %d", n, code)
		}
	}
	if page := ok(t, c, cluster.Request{Path: "/metrics"}).Body; !strings.Contains(page, fmt.Sprintf("\nportico_watches_per_user_limit %d\n", watchShare)) ||
		!strings.Contains(page, "\napiserver_dropped_requests_total{request_kind=\"watch\"} 1\n") {
		t.Error("the metrics do not show the limit and one refused watch")
	}
	endOne()
	eventually(t, "a watch has ended", func() bool { return open(ctx, as("greedy")).StatusCode == http.StatusOK })
}
