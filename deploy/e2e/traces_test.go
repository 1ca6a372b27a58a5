package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/deploy/e2e/cluster"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/vocabulary"
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

// TestOneTrace: a create leaves one trace through all processes that take part in it,
// and a watch event names the create that caused it.
func TestOneTrace(t *testing.T) {
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
	c := s.connect(t, "frontdoor")
	hook := startHook(t, c)

	events, err := c.Send(t.Context(), cluster.Request{Path: tracedPath + "?watch=true&resourceVersion=0", Header: named(watchTrace)})
	if err != nil {
		t.Fatal(err)
	}
	ok(t, c, cluster.Request{Method: http.MethodPost, Path: tracedPath, Body: tracedMap("traced"), Header: named(createTrace)})
	for decoder, event := json.NewDecoder(events.Body), ""; !strings.Contains(event, `"traced"`); {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		event = string(raw)
	}
	events.Body.Close() // so that the span of the watch ends
	spans := received.Wait(t, func(spans []collector.Span) bool {
		ways := waysOf(spans)
		return !slices.ContainsFunc(createWays(), func(way string) bool { return !slices.Contains(ways[createTrace], way) }) &&
			slices.Contains(ways[watchTrace], "frontdoor watch configmaps > frontdoor event")
	})
	checkCreate(t, spans)
	checkEvent(t, spans)
	t.Run("webhook", func(t *testing.T) { hook.check(t, spans) })
	t.Run("authn", func(t *testing.T) { checkStranger(t, c, received) })
	t.Run("log", func(t *testing.T) { s.checkLog(t, c) })
	t.Run("exemplars", func(t *testing.T) { checkExemplars(t, c) })
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

// createWays are the ways to the spans of the create.
func createWays() []string {
	const (
		root  = "frontdoor create configmaps"
		store = root + " > frontdoor stored > frontdoor portico.v1.Store/Create > store portico.v1.Store/Create"
	)
	return []string{
		root,
		root + " > frontdoor authenticated",
		root + " > frontdoor authorized > frontdoor portico.v1.Authz/Authorize > authz portico.v1.Authz/Authorize",
		root + " > frontdoor received",
		root + " > frontdoor limited",
		root + " > frontdoor current",
		root + " > frontdoor desired",
		root + " > frontdoor admitted > frontdoor portico.v1.Admission/Mutate > admission portico.v1.Admission/Mutate",
		root + " > frontdoor validated > frontdoor portico.v1.Admission/Validate > admission portico.v1.Admission/Validate > admission webhook.admit",
		store,
		store + " > store etcd.txn",
		store + " > watch-hub published",
	}
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
func checkEvent(t *testing.T, spans []collector.Span) {
	t.Helper()
	var write collector.Span
	for _, s := range spans {
		if s.Trace == createTrace && s.Service == "store" && s.Name == "portico.v1.Store/Create" {
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
func checkStranger(t *testing.T, c *cluster.Cluster, received *collector.Collector) {
	stranger := *c
	stranger.Token = "nobody's"
	for _, header := range []http.Header{named(strangerTrace), nil} {
		if a := stranger.Ask(t, cluster.Request{Path: "/version", Header: header}); a.Code != http.StatusUnauthorized {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	for trace := range waysOf(received.Wait(t, func(spans []collector.Span) bool {
		for _, ways := range waysOf(spans) {
			if slices.Contains(ways, "frontdoor get nonresource > frontdoor authenticated > frontdoor portico.v1.Authn/Authenticate > authn portico.v1.Authn/Authenticate") {
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
func (s *suite) checkLog(t *testing.T, c *cluster.Cluster) {
	a := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: tracedPath, Body: tracedMap("broken"), Header: named(failTrace)})
	if a.Code != http.StatusInternalServerError {
		t.Fatalf("got %d %s", a.Code, a.Body)
	}
	eventually(t, "the log names the trace", func() bool {
		log, err := os.ReadFile(s.processes["frontdoor"].output)
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
func checkExemplars(t *testing.T, c *cluster.Cluster) {
	plain := ok(t, c, cluster.Request{Path: "/metrics"})
	if strings.Contains(plain.Body, "trace_id") || !strings.HasPrefix(plain.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s shows exemplars", plain.Header.Get("Content-Type"))
	}
	open := ok(t, c, cluster.Request{Path: "/metrics", Header: http.Header{"Accept": {"application/openmetrics-text;version=1.0.0"}}})
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

func (h *hook) asked(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, asked := h.parents[name]
	return asked
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
			if want := "00-" + createTrace + "-" + s.ID + "-01"; h.parents["traced"] != want {
				t.Errorf("the webhook was called with the traceparent %q, want %q", h.parents["traced"], want)
			}
			return
		}
	}
	t.Error("the trace shows no webhook")
}
