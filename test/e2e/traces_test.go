package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// IDs that clients choose.
const (
	createTrace   = "11111111111111111111111111111111"
	watchTrace    = "22222222222222222222222222222222"
	failTrace     = "33333333333333333333333333333333"
	strangerTrace = "44444444444444444444444444444444"
	clientSpan    = "5555555555555555"
)

// named returns the header of a client whose sampled span is part of a trace.
func named(trace string) http.Header {
	return http.Header{"Traceparent": {"00-" + trace + "-" + clientSpan + "-01"}}
}

// tracing is a running suite that sends its spans.
type tracing struct {
	*cluster.Cluster
	received *collector.Collector
	door     *process // the one that clients talk to
	// service is that process in its spans.
	service string
	// ways are the ways to the spans of a create, and write the span that a watch event
	// links to.
	ways  []string
	write string
	// somewhere is the end of a way in any trace; empty for none.
	somewhere string
	// authn is the way to the innermost span of a request with an unknown token.
	authn string
}

// TestOneTrace: a create leaves one trace through all processes that take part in it,
// and a watch event names the create that caused it.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	received := collector.Start(t)
	s := newSuite(t, vocabulary.K8s())
	for _, p := range programs() {
		p.args = append(p.args, "--otlp-endpoint="+received.Address)
		if p.name == "frontdoor" {
			p.args = append(p.args, "--trace-sampling=1")
		}
		s.start(t, p)
	}
	const (
		root  = "frontdoor create configmaps > frontdoor "
		store = root + "stored > frontdoor portico.v1.Store/Create > store portico.v1.Store/Create"
	)
	x := tracing{Cluster: s.connect(t, "frontdoor"), received: received, door: s.processes["frontdoor"], service: "frontdoor",
		write: "store portico.v1.Store/Create",
		authn: "frontdoor get nonresource > frontdoor authenticated > frontdoor portico.v1.Authn/Authenticate > authn portico.v1.Authn/Authenticate",
		ways: append(stages(root),
			root+"admitted > frontdoor portico.v1.Admission/Mutate > admission portico.v1.Admission/Mutate",
			root+"validated > frontdoor portico.v1.Admission/Validate > admission portico.v1.Admission/Validate > admission webhook.admit",
			store, store+" > store etcd.txn", store+" > watch-hub published"),
		// Decisions are cached, so that this create may need none.
		somewhere: "authorized > frontdoor portico.v1.Authz/Authorize > authz portico.v1.Authz/Authorize"}
	x.check(t)
}

// TestOneTraceOfOneProcess: the same without calls between processes.
func TestOneTraceOfOneProcess(t *testing.T) {
	t.Parallel()
	received := collector.Start(t)
	one := startAllInOne(t, vocabulary.K8s(), "--otlp-endpoint="+received.Address, "--trace-sampling=1")
	const root = "portico create configmaps > portico "
	x := tracing{Cluster: one.Cluster, received: received, door: one.process, service: "portico", write: "portico stored",
		authn: "portico get nonresource > portico authenticated",
		ways:  append(stages(root), root+"validated > portico webhook.admit", root+"stored > portico etcd.txn", root+"stored > portico published")}
	x.check(t)
}

// stages are the ways to the spans that there are wherever the services run.
func stages(root string) (ways []string) {
	for _, name := range []string{"authenticated", "authorized", "received", "limited", "current", "desired", "admitted", "validated", "stored"} {
		ways = append(ways, root+name)
	}
	return ways
}

// check makes a create that a watch sees, and looks at its spans.
func (x *tracing) check(t *testing.T) {
	hook := startHook(t, x.Cluster)
	events, err := x.Send(t.Context(), cluster.Request{Path: tracedPath + "?watch=true&resourceVersion=0", Header: named(watchTrace)})
	if err != nil {
		t.Fatal(err)
	}
	ok(t, x.Cluster, cluster.Request{Method: http.MethodPost, Path: tracedPath, Body: tracedMap("traced"), Header: named(createTrace)})
	for decoder, event := json.NewDecoder(events.Body), ""; !strings.Contains(event, `"traced"`); {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		event = string(raw)
	}
	events.Body.Close() // so that the span of the watch ends
	spans := x.received.Wait(t, func(spans []collector.Span) bool {
		ways := waysOf(spans)
		some := slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(ways))...), func(way string) bool { return strings.HasSuffix(way, x.somewhere) })
		return some && !slices.ContainsFunc(x.ways, func(way string) bool { return !slices.Contains(ways[createTrace], way) }) &&
			slices.Contains(ways[watchTrace], x.service+" watch configmaps > "+x.service+" event")
	})
	checkCreate(t, spans)
	x.checkEvent(t, spans)
	t.Run("webhook", func(t *testing.T) { hook.check(t, spans) })
	t.Run("stranger", x.checkStranger)
	t.Run("log", x.checkLog)
	t.Run("exemplars", x.checkExemplars)
}

const tracedPath = "/api/v1/namespaces/default/configmaps"

func tracedMap(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"password":"s3cr3t"}}`, name)
}

// waysOf returns, by trace, the way from the root to each span.
func waysOf(spans []collector.Span) map[string][]string {
	byID, ways := map[string]collector.Span{}, map[string][]string{}
	for _, s := range spans {
		byID[s.ID] = s
	}
	for _, s := range spans {
		way := s.Service + " " + s.Name
		for parent, found := byID[s.Parent]; found; parent, found = byID[parent.Parent] {
			way = parent.Service + " " + parent.Name + " > " + way
		}
		ways[s.Trace] = append(ways[s.Trace], way)
	}
	return ways
}

// checkCreate checks who began the trace, and that no span shows what is confidential.
func checkCreate(t *testing.T, spans []collector.Span) {
	t.Helper()
	for _, s := range spans {
		if s.Trace == createTrace && s.Name == "create configmaps" && s.Parent != clientSpan {
			t.Errorf("the parent of the request is %s, want the client's span", s.Parent)
		}
		if shown := fmt.Sprint(s.Attributes); strings.Contains(shown, "s3cr3t") || strings.Contains(shown, "Bearer") {
			t.Errorf("%s shows %s", s.Name, shown)
		}
	}
}

// checkEvent checks that the watch event links to the write.
func (x *tracing) checkEvent(t *testing.T, spans []collector.Span) {
	t.Helper()
	var write collector.Span
	for _, s := range spans {
		if s.Trace == createTrace && s.Service+" "+s.Name == x.write {
			write = s
		}
	}
	if !slices.ContainsFunc(spans, func(s collector.Span) bool {
		return s.Trace == watchTrace && s.Name == "event" && slices.Contains(s.Links, collector.Link{Trace: createTrace, ID: write.ID})
	}) {
		t.Errorf("no event of the watch links to the write %+v", write)
	}
}

// checkStranger checks that the trace of a request shows the call of authn, and that a
// stranger cannot ask for a trace.
func (x *tracing) checkStranger(t *testing.T) {
	stranger := *x.Cluster
	stranger.Token = "nobody's"
	for _, header := range []http.Header{named(strangerTrace), nil} {
		if a := stranger.Ask(t, cluster.Request{Path: "/version", Header: header}); a.Code != http.StatusUnauthorized {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	for trace := range waysOf(x.received.Wait(t, func(spans []collector.Span) bool {
		for _, ways := range waysOf(spans) {
			if slices.Contains(ways, x.authn) {
				return true
			}
		}
		return false
	})) {
		if trace == strangerTrace {
			t.Error("a stranger has made a trace")
		}
	}
}

// checkLog checks that the log line of a failed request names its trace.
func (x *tracing) checkLog(t *testing.T) {
	a := x.Ask(t, cluster.Request{Method: http.MethodPost, Path: tracedPath, Body: tracedMap("broken"), Header: named(failTrace)})
	if a.Code != http.StatusInternalServerError {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	eventually(t, "the log names the trace", func() bool {
		log, err := os.ReadFile(x.door.output)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "request failed") && strings.Contains(line, "trace_id="+failTrace) {
				return true
			}
		}
		return false
	})
}

// checkExemplars checks that the latency of the create names its trace, to those who
// ask for the format that has exemplars.
func (x *tracing) checkExemplars(t *testing.T) {
	plain := ok(t, x.Cluster, cluster.Request{Path: "/metrics"})
	if strings.Contains(plain.Body, "trace_id") || !strings.HasPrefix(plain.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s shows exemplars", plain.Header.Get("Content-Type"))
	}
	open := ok(t, x.Cluster, cluster.Request{Path: "/metrics", Header: http.Header{"Accept": {"application/openmetrics-text;version=1.0.0"}}})
	for line := range strings.Lines(open.Body) {
		if strings.HasPrefix(line, "apiserver_request_duration_seconds_bucket") && strings.Contains(line, `verb="create"`) && strings.Contains(line, `# {trace_id="`) {
			return
		}
	}
	t.Errorf("no latency of a create has an exemplar:\n%.2000s", open.Body)
}

// hook is a validating webhook that notes the traces of its requests.
type hook struct {
	mu      sync.Mutex
	parents map[string]string // by the name of the object
}

// startHook starts it and waits until it is asked.
func startHook(t *testing.T, c *cluster.Cluster) *hook {
	t.Helper()
	h := &hook{parents: map[string]string{}}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	authority, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	ok(t, c, post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", fmt.Sprintf(`{
		"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"traces"},
		"webhooks":[{"name":"traces.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
			"clientConfig":{"url":%q,"caBundle":%s},
			"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`, server.URL, authority)))
	eventually(t, "the webhook is asked", func() bool {
		ok(t, c, post(tracedPath+"?dryRun=All", tracedMap("asked")))
		return h.asked("asked")
	})
	return h
}

// parent returns the traceparent with which the webhook reviewed an object.
func (h *hook) parent(name string) (traceparent string, reviewed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	traceparent, reviewed = h.parents[name]
	return traceparent, reviewed
}

func (h *hook) asked(name string) bool {
	_, reviewed := h.parent(name)
	return reviewed
}

// ServeHTTP implements http.Handler.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct{ Request struct{ UID, Name string } }
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.parents[review.Request.Name] = r.Header.Get("Traceparent")
	h.mu.Unlock()
	if review.Request.Name == "broken" {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// check checks that the webhook was told which span called it.
func (h *hook) check(t *testing.T, spans []collector.Span) {
	for _, s := range spans {
		if s.Trace == createTrace && s.Name == "webhook.admit" {
			got, _ := h.parent("traced")
			if want := "00-" + createTrace + "-" + s.ID + "-01"; got != want {
				t.Errorf("the webhook was called with the traceparent %q, want %q", got, want)
			}
			return
		}
	}
	t.Error("the trace shows no webhook")
}
