package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// gate is a validating webhook. While it is shut, it holds each request until it is opened.
type gate struct {
	*httptest.Server
	opened chan struct{}
	open   func()

	mu                sync.Mutex
	shut              bool
	asked, held, most int
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string
			Request    struct{ UID string }
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		g.pass(r.Context())
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": "AdmissionReview", // the caller may have left
			"response": map[string]any{"uid": review.Request.UID, "allowed": true}})
	}))
	t.Cleanup(g.Close)
	t.Cleanup(g.open)
	return g
}

// pass returns when a request may go on.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if !g.shut {
		return
	}
	g.held++
	g.most = max(g.most, g.held)
	g.mu.Unlock()
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
	g.mu.Lock()
	g.held--
}

// times is how many requests have reached it.
func (g *gate) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// hold shuts it.
func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

func (g *gate) counts() (held, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held, g.most
}

const sharedFlow = "/apis/flowcontrol.apiserver.k8s.io/v1/"

// sharedObjects are the objects of sharedSeats: a level of its own for the user noisy, and a webhook for what noisy writes.
func sharedObjects(g *gate) map[string]string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}))
	return map[string]string{
		sharedFlow + "prioritylevelconfigurations": `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":{"name":"noisy"},"spec":{"type":"Limited",
			"limited":{"nominalConcurrencyShares":20,"borrowingLimitPercent":0,"limitResponse":{"type":"Queue","queuing":{"queues":1,"handSize":1,"queueLengthLimit":50}}}}}`,
		sharedFlow + "flowschemas": `{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"FlowSchema","metadata":{"name":"noisy"},"spec":{"matchingPrecedence":30,
			"priorityLevelConfiguration":{"name":"noisy"},"rules":[{"subjects":[{"kind":"User","user":{"name":"noisy"}}],
			"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}}`,
		"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"shares"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[
			{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"noisy"},{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"quiet"}]}`,
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"gate"},
			"webhooks":[{"name":"gate.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":30,
			"clientConfig":{"url":"` + g.URL + `","caBundle":"` + ca + `"},"objectSelector":{"matchLabels":{"held":"yes"}},
			"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}]}`,
	}
}

var nominalSeats = regexp.MustCompile(`(?m)^apiserver_flowcontrol_nominal_limit_seats\{priority_level="noisy"\} (\d+)$`)

// nominal returns the seats of the level noisy at a front door, or 0 while it does not know the level.
func nominal(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	found := nominalSeats.FindStringSubmatch(ok(t, c, cluster.Request{Path: "/metrics"}).Body)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func heldConfigMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","labels":{"held":"yes"}}}`
}

// sharedSeats: 200 workers of one client at two front doors get the seats of their level once, not at each front door, and leave
// other clients theirs. What is refused is refused with 429 and Retry-After. alone ends the second front door: the first gets all seats.
func sharedSeats(t *testing.T, first, second *cluster.Cluster, alone func()) {
	doors, g := []*cluster.Cluster{first, second}, newGate(t)
	made := map[string]cluster.Answer{}
	for path, body := range sharedObjects(g) {
		made[path] = ok(t, first, post(path, body))
	}
	noisy, quiet := http.Header{"Impersonate-User": {"noisy"}}, http.Header{"Impersonate-User": {"quiet"}}
	var schema struct{ Metadata struct{ UID string } }
	made[sharedFlow+"flowschemas"].Decode(t, &schema)
	total := 0
	eventually(t, "both front doors have their part of the level", func() bool {
		for _, c := range doors {
			if got := c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/default/configmaps/none", Header: noisy}); got.Header.Get("X-Kubernetes-PF-FlowSchema-UID") != schema.Metadata.UID {
				return false
			}
		}
		total = nominal(t, first) + nominal(t, second)
		return total > 0 && nominal(t, first) == nominal(t, second)
	})
	eventually(t, "the webhook is asked about what either front door gets", func() bool {
		for _, c := range doors {
			before := g.times()
			ok(t, c, post("/api/v1/namespaces/default/configmaps?dryRun=All", heldConfigMap("probe")))
			if g.times() == before {
				return false
			}
		}
		return true
	})
	g.hold()
	t.Cleanup(func() {
		_, most := g.counts()
		t.Logf("%d requests were held at most, with %d seats", most, total)
	})
	const workers = 200
	answers := make(chan cluster.Answer, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			r := post("/api/v1/namespaces/default/configmaps", heldConfigMap(fmt.Sprintf("held-%d", i)))
			r.Header = noisy
			answer, err := doors[i%2].Do(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		})
	}
	eventually(t, "the seats are taken", func() bool { held, _ := g.counts(); return held == total })
	for i, c := range doors {
		name := fmt.Sprintf("quiet-%d", i)
		for _, r := range []cluster.Request{post("/api/v1/namespaces/default/configmaps", strings.Replace(heldConfigMap(name), "held", "free", 1)),
			{Path: "/api/v1/namespaces/default/configmaps/" + name}} {
			r.Header = quiet
			ok(t, c, r)
		}
	}
	if held, most := g.counts(); held != total || most != total {
		t.Errorf("%d requests are held, and %d were, want %d", held, most, total)
	}
	g.open()
	all.Wait()
	close(answers)
	codes := map[int]int{}
	for answer := range answers {
		codes[answer.Code]++
		if answer.Code == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Errorf("a refusal does not say when to come again: %s", answer.Body)
		}
	}
	if codes[http.StatusCreated]+codes[http.StatusTooManyRequests] != workers || codes[http.StatusCreated] < total {
		t.Errorf("the answers are %v with %d seats", codes, total)
	}
	alone()
	eventually(t, "the first front door has all seats", func() bool { return nominal(t, first) >= total-1 })
}
