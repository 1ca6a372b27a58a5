package subresources

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// now is a whole second, as times in objects are.
var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a store with handlers in front of it.
type bench struct {
	*testing.T
	store    services.Store
	handlers *Handlers
	engine   *typesystem.Engine
	key      *ecdsa.PrivateKey
	audit    *audit.Record // of all requests; nil if each has its own
}

func newBench(t *testing.T) *bench {
	t.Helper()
	e := handlertest.Engine(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	v := vocabulary.K8s()
	signs := &issuer.Issuer{Name: "https://api", Audiences: []string{"https://api"}, Claim: v.Domain}
	if err := signs.Sign(file); err != nil {
		t.Fatal(err)
	}
	store := fake.New(t).Store()
	codec := wire.New(wire.Config{Vocabulary: v})
	return &bench{T: t, store: store, engine: e, key: key, handlers: &Handlers{Store: store, Admission: handlertest.AdmitAll{}, Codec: codec, Vocabulary: v,
		Writes: &writes.Handlers{Store: store, Admission: handlertest.AdmitAll{}, Codec: codec, Vocabulary: v, Log: slog.New(slog.DiscardHandler)},
		Tokens: signs,
		Now:    func() time.Time { return now }}}
}

// keep stores an object of the namespace default.
func (b *bench) keep(gr resource.GroupResource, object string) {
	b.Helper()
	decoded, err := tree.Decode([]byte(object))
	if err != nil {
		b.Fatal(err)
	}
	content, err := b.engine.Content(context.Background(), decoded, nil, b.engine.Types.Stored(gr))
	if err != nil {
		b.Fatal(err)
	}
	namespace := "default"
	if gr.Resource == "nodes" {
		namespace = ""
	}
	key := resource.Key{GroupResource: gr, Namespace: namespace, Name: tree.Text(decoded, "metadata", "name")}
	if _, err := b.store.Create(b.Context(), services.CreateRequest{Key: key, Content: content}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) pod(name, rest string) {
	b.Helper()
	b.keep(pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+name+`","namespace":"default","uid":"u-`+name+`","labels":{"a":"b"}}`+rest+`}`)
}

// read returns an object as it is stored; nil when it is gone.
func (b *bench) read(gr resource.GroupResource, name string) map[string]any {
	b.Helper()
	object, err := b.store.Get(b.Context(), services.GetRequest{Key: resource.Key{GroupResource: gr, Namespace: "default", Name: name}})
	if err != nil {
		return nil
	}
	decoded, err := tree.Decode(object.JSON)
	if err != nil {
		b.Fatal(err)
	}
	return decoded
}

// post sends a body to a path in the namespace default.
func (b *bench) post(path, body string) (map[string]any, error) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), "POST", "/api/v1/namespaces/default/"+path, strings.NewReader(body))
	asked := &request.Request{Request: r, Audit: cmp.Or(b.audit, &audit.Record{})}
	if _, err := asked.Identify(b.engine); err != nil {
		return nil, err
	}
	serve := b.handlers.Of(asked)
	if serve == nil {
		b.Fatalf("%s is no action", path)
	}
	w := httptest.NewRecorder()
	if err := serve(w, asked); err != nil {
		return nil, err
	}
	var answer map[string]any
	return answer, json.Unmarshal(w.Body.Bytes(), &answer)
}

// refused posts what has to fail.
func (b *bench) refused(reason, path, body string) {
	b.Helper()
	if _, err := b.post(path, body); !services.IsReason(err, reason) {
		b.Errorf("%s %s: got %v, want %s", path, body, err, reason)
	}
}

func TestBinding(t *testing.T) {
	b := newBench(t)
	b.pod("p", "")
	b.pod("q", "")
	binding := func(name, rest string) string {
		return `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"` + name + `"` + rest + `},"target":{"kind":"Node","name":"n1"}}`
	}
	b.refused(services.ReasonBadRequest, "pods/p/binding", binding("other", ""))
	b.refused(services.ReasonBadRequest, "pods/p/binding", binding("", ""))
	b.refused(services.ReasonBadRequest, "pods/p/binding", binding("p", `,"namespace":"other"`))
	b.refused(services.ReasonNotFound, "bindings", binding("none", ""))
	b.refused(services.ReasonInvalid, "bindings", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Pod","name":"n1"}}`)
	b.refused(services.ReasonBadRequest, "bindings", binding("", ""))
	b.refused(services.ReasonInvalid, "bindings", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","labels":{"a b":"c"}},"target":{"kind":"Node","name":"n1"}}`)
	b.refused(services.ReasonConflict, "pods/p/binding", binding("p", `,"uid":"another"`))
	for path, body := range map[string]string{"pods/p/binding?dryRun=": binding("p", ""), "pods/p/eviction?dryRun=": eviction("v1", "p", "")} {
		b.refused(services.ReasonInvalid, path, body)
	}
	if _, err := b.post("pods/p/binding?dryRun=All", binding("p", "")); err != nil || tree.Text(b.read(pods, "p"), "spec", "nodeName") != "" {
		t.Errorf("dry-run: %v", err)
	}
	for path, name := range map[string]string{"pods/p/binding": "p", "bindings": "q"} {
		if _, err := b.post(path, binding(name, `,"annotations":{"x":"y"}`)); err != nil {
			t.Fatal(err)
		}
		pod := b.read(pods, name)
		conditions, _ := tree.Object(pod, "status")["conditions"].([]any)
		if tree.Text(pod, "spec", "nodeName") != "n1" || tree.Text(pod, "metadata", "annotations", "x") != "y" || len(conditions) != 1 {
			t.Errorf("%s: %v", name, pod)
		}
		b.refused(services.ReasonConflict, path, binding(name, ""))
	}
	b.keep(pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"gated","namespace":"default"},"spec":{"schedulingGates":[{"name":"a"}],"containers":[{"name":"a","image":"b"}]}}`)
	b.refused(services.ReasonConflict, "pods/gated/binding", binding("gated", ""))
}

const runs = `,"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`

func eviction(version, name, rest string) string {
	return `{"apiVersion":"policy/` + version + `","kind":"Eviction","metadata":{"name":"` + name + `"}` + rest + `}`
}

// TestEvictionsShareABudget lets many evictions ask at once for the one disruption
// that a budget allows.
func TestEvictionsShareABudget(t *testing.T) {
	b := newBench(t)
	names := []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"}
	for _, name := range names {
		b.pod(name, runs)
	}
	b.keep(budgets, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"default","generation":1},
		"spec":{"selector":{"matchLabels":{"a":"b"}}},"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":8,"desiredHealthy":7,"expectedPods":8}}`)
	if _, err := b.post("pods/p0/eviction?dryRun=All", eviction("v1", "p0", "")); err != nil || b.read(pods, "p0") == nil {
		t.Errorf("dry-run: %v", err)
	}
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			_, err := b.post("pods/"+name+"/eviction", eviction([]string{"v1", "v1beta1"}[i%2], name, ""))
			if err != nil && !services.IsReason(err, services.ReasonTooManyRequests) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left := 0
	for _, name := range names {
		if b.read(pods, name) != nil {
			left++
		}
	}
	status := tree.Object(b.read(budgets, "x"), "status")
	if none := tree.List(status, "conditions"); len(none) != 1 || none[0].(map[string]any)["status"] != "False" || none[0].(map[string]any)["reason"] != "InsufficientPods" {
		t.Errorf("conditions of a budget without disruptions: %v", none)
	}
	if left != len(names)-1 || status["disruptionsAllowed"] != int64(0) || len(tree.Object(status, "disruptedPods")) != 1 {
		t.Errorf("%d pods are left, the budget is %v", left, status)
	}
}

func TestEviction(t *testing.T) {
	b := newBench(t)
	b.pod("pending", `,"status":{"phase":"Pending"}`)
	b.pod("free", runs)
	b.pod("bound", `,"spec":{"nodeName":"n1"}`+runs)
	b.refused(services.ReasonNotFound, "pods/none/eviction", eviction("v1", "none", ""))
	b.refused(services.ReasonBadRequest, "pods/free/eviction", eviction("v1", "", ""))
	b.refused(services.ReasonConflict, "pods/free/eviction", eviction("v1", "free", `,"deleteOptions":{"preconditions":{"uid":"x"}}`))
	for _, name := range []string{"pending", "free"} {
		if _, err := b.post("pods/"+name+"/eviction", eviction("v1", name, "")); err != nil || b.read(pods, name) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.post("pods/bound/eviction", eviction("v1", "bound", `,"deleteOptions":{"gracePeriodSeconds":7}`)); err != nil {
		t.Fatal(err)
	}
	if meta := tree.Object(b.read(pods, "bound"), "metadata"); meta["deletionGracePeriodSeconds"] != int64(7) {
		t.Errorf("the pod on a node is %v", meta)
	}
}

// TestEvictionOfAnUnreadyPod: the budget does not count the pod, as long as it is the one that
// was looked at.
func TestEvictionOfAnUnreadyPod(t *testing.T) {
	b := newBench(t)
	b.pod("unready", `,"status":{"phase":"Running"}`)
	b.keep(budgets, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"default","generation":1},
		"spec":{"selector":{"matchLabels":{"a":"b"}}},"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":2}}`)
	b.refused(services.ReasonTooManyRequests, "pods/unready/eviction", eviction("v1", "unready", `,"deleteOptions":{"preconditions":{"uid":"x"}}`))
	b.refused(services.ReasonConflict, "pods/unready/eviction", eviction("v1", "unready", `,"deleteOptions":{"preconditions":{"resourceVersion":"1"}}`))
	if _, err := b.post("pods/unready/eviction", eviction("v1", "unready", "")); err != nil || b.read(pods, "unready") != nil {
		t.Errorf("%v", err)
	}
}

// TestEvictionPolicy: a budget may allow that every pod that is not ready is evicted.
func TestEvictionPolicy(t *testing.T) {
	for policy, evicted := range map[string]bool{`"AlwaysAllow"`: true, `"IfHealthyBudget"`: false} {
		b := newBench(t)
		b.engine = handlertest.EngineOf(t, release.V136)
		b.pod("unready", `,"status":{"phase":"Running"}`)
		b.pod("ready", runs)
		b.keep(budgets, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"default","generation":1},
			"spec":{"unhealthyPodEvictionPolicy":`+policy+`,"selector":{"matchLabels":{"a":"b"}}},"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":2,"expectedPods":2}}`)
		b.refused(services.ReasonTooManyRequests, "pods/ready/eviction", eviction("v1", "ready", ""))
		if _, err := b.post("pods/unready/eviction", eviction("v1", "unready", "")); (err == nil) != evicted || (b.read(pods, "unready") == nil) != evicted {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

// startsMeanwhile is a store in which a pending pod becomes ready right after it was read.
type startsMeanwhile struct {
	services.Store
	start func()
}

func (s *startsMeanwhile) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	o, err := s.Store.Get(ctx, r)
	if start := s.start; start != nil && r.Key.GroupResource == pods {
		s.start = nil
		start()
	}
	return o, err
}

// TestEvictionOfAPodThatStarts: a pod that was pending when it was read is counted if it is ready when it is deleted.
func TestEvictionOfAPodThatStarts(t *testing.T) {
	b := newBench(t)
	b.pod("starts", `,"status":{"phase":"Pending"}`)
	b.keep(budgets, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"default","generation":1},
		"spec":{"selector":{"matchLabels":{"a":"b"}}},"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`)
	b.handlers.Store = &startsMeanwhile{b.store, func() {
		key := resource.Key{GroupResource: pods, Namespace: "default", Name: "starts"}
		object, err := b.store.Get(b.Context(), services.GetRequest{Key: key})
		if err != nil {
			b.Fatal(err)
		}
		if _, err = b.store.Delete(b.Context(), services.DeleteRequest{Key: key, Revision: object.Revision}); err != nil {
			b.Fatal(err)
		}
		b.pod("starts", runs)
	}}
	b.refused(services.ReasonTooManyRequests, "pods/starts/eviction", eviction("v1", "starts", ""))
	if b.read(pods, "starts") == nil {
		t.Error("the pod is gone")
	}
}

// TestLabelsOfBinding: a pod gets the labels of its binding.
func TestLabelsOfBinding(t *testing.T) {
	pod := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b", "c": "d"}}}
	label(pod, map[string]string{"a": "x", "e": "f"})
	label(pod, nil)
	if want := map[string]any{"a": "x", "c": "d", "e": "f"}; !reflect.DeepEqual(tree.Object(pod, "metadata")["labels"], want) {
		t.Errorf("%v", pod)
	}
}

// TestAnnouncedEviction: at 1.36 the condition of a pod that is evicted tells its controllers so.
func TestAnnouncedEviction(t *testing.T) {
	b := newBench(t)
	b.engine = handlertest.EngineOf(t, release.V136)
	b.pod("bound", `,"spec":{"nodeName":"n1"}`+runs)
	if _, err := b.post("pods/bound/eviction?dryRun=All", eviction("v1", "bound", "")); err != nil || len(tree.List(b.read(pods, "bound"), "status", "conditions")) != 1 {
		t.Fatalf("%v: %v", b.read(pods, "bound"), err)
	}
	b.refused(services.ReasonConflict, "pods/bound/eviction", eviction("v1", "bound", `,"deleteOptions":{"preconditions":{"resourceVersion":"1"}}`))
	b.refused(services.ReasonConflict, "pods/bound/eviction", eviction("v1", "bound", `,"deleteOptions":{"preconditions":{"uid":"x"}}`))
	if conditions := tree.List(b.read(pods, "bound"), "status", "conditions"); len(conditions) != 1 {
		t.Errorf("a pod that is not evicted has %v", conditions)
	}
	object, err := b.store.Get(b.Context(), services.GetRequest{Key: resource.Key{GroupResource: pods, Namespace: "default", Name: "bound"}})
	if err != nil {
		t.Fatal(err)
	}
	options := `,"deleteOptions":{"gracePeriodSeconds":7,"preconditions":{"resourceVersion":"` + resource.FormatResourceVersion(object.Revision) + `"}}`
	if _, err := b.post("pods/bound/eviction", eviction("v1", "bound", options)); err != nil {
		t.Fatal(err)
	}
	conditions := tree.List(b.read(pods, "bound"), "status", "conditions")
	want := map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
		"lastProbeTime": nil, "lastTransitionTime": "2030-01-02T03:04:05Z"}
	if len(conditions) != 2 || !reflect.DeepEqual(conditions[1], any(want)) || tree.Object(b.read(pods, "bound"), "metadata")["deletionTimestamp"] == nil {
		t.Errorf("%v", conditions)
	}
}

// TestTokenOfPodOnNode: since release 1.30 the token of a pod names its node, also if that does not
// exist.
func TestTokenOfPodOnNode(t *testing.T) {
	for r, want := range map[release.Release]string{release.V121: `null`, release.V136: `{"name":"n1","uid":"u-n1"}`} {
		b := newBench(t)
		b.engine = handlertest.EngineOf(t, r)
		b.keep(resource.GroupResource{Resource: "serviceaccounts"}, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob","namespace":"default","uid":"u"}}`)
		b.keep(resource.GroupResource{Resource: "nodes"}, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u-n1"}}`)
		b.pod("p", `,"spec":{"serviceAccountName":"bob","nodeName":"n1"}`)
		b.pod("lost", `,"spec":{"serviceAccountName":"bob","nodeName":"n2"}`)
		b.pod("waits", `,"spec":{"serviceAccountName":"bob"}`)
		lost := "null"
		if want != lost {
			lost = `{"name":"n2"}`
		}
		for pod, want := range map[string]string{"p": want, "lost": lost, "waits": "null"} {
			answer, err := b.post("serviceaccounts/bob/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600,"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"`+pod+`"}}}`)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(tree.Text(answer, "status", "token"), []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				t.Fatal(err)
			}
			var whom struct {
				K struct {
					Node json.RawMessage `json:"node"`
				} `json:"kubernetes.io"`
			}
			if err := token.Claims(&b.key.PublicKey, &whom); err != nil {
				t.Fatal(err)
			}
			if got := cmp.Or(string(whom.K.Node), "null"); got != want {
				t.Errorf("%s: the token of the pod %s names the node %s, want %s", r, pod, got, want)
			}
		}
	}
}

// TestTokenOfANode: since release 1.33 a token can be bound to a node, which must exist.
func TestTokenOfANode(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		b := newBench(t)
		b.engine = handlertest.EngineOf(t, r)
		b.keep(resource.GroupResource{Resource: "serviceaccounts"}, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob","namespace":"default","uid":"u"}}`)
		b.keep(resource.GroupResource{Resource: "nodes"}, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u-n1"}}`)
		ask := func(of, name, uid string) string {
			return `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600,"boundObjectRef":{"apiVersion":"` + of +
				`","kind":"Node","name":"` + name + `","uid":"` + uid + `"}}}`
		}
		if r == release.V121 {
			b.refused(services.ReasonBadRequest, "serviceaccounts/bob/token", ask("v1", "n1", ""))
			continue
		}
		b.refused(services.ReasonNotFound, "serviceaccounts/bob/token", ask("v1", "n2", ""))
		b.refused(services.ReasonConflict, "serviceaccounts/bob/token", ask("v1", "n1", "u-n2"))
		b.refused(services.ReasonBadRequest, "serviceaccounts/bob/token", ask("v1", "", ""))
		b.refused(services.ReasonBadRequest, "serviceaccounts/bob/token", ask("apps/v1", "n1", ""))
		answer, err := b.post("serviceaccounts/bob/token", ask("v1", "n1", ""))
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.ParseSigned(tree.Text(answer, "status", "token"), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		var whom struct {
			K map[string]json.RawMessage `json:"kubernetes.io"`
		}
		if err := token.Claims(&b.key.PublicKey, &whom); err != nil {
			t.Fatal(err)
		}
		if got := string(whom.K["node"]); got != `{"name":"n1","uid":"u-n1"}` || whom.K["pod"] != nil || whom.K["secret"] != nil {
			t.Errorf("the token speaks for %s", whom.K)
		}
	}
}

func TestNoTableOfAnAction(t *testing.T) {
	b := newBench(t)
	b.pod("p", "")
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/namespaces/default/bindings", strings.NewReader(`{}`))
	r.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	asked := &request.Request{Request: r, Audit: &audit.Record{}}
	if _, err := asked.Identify(b.engine); err != nil {
		t.Fatal(err)
	}
	if err := b.handlers.Of(asked)(httptest.NewRecorder(), asked); !services.IsReason(err, services.ReasonNotAcceptable) {
		t.Errorf("got %v", err)
	}
}

func TestToken(t *testing.T) {
	b := newBench(t)
	b.keep(resource.GroupResource{Resource: "serviceaccounts"}, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob","namespace":"default","uid":"u"}}`)
	b.pod("p", `,"spec":{"serviceAccountName":"bob"}`)
	b.pod("other", `,"spec":{"serviceAccountName":"eve"}`)
	ask := func(spec string) string {
		return `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{` + spec + `}}`
	}
	bound := func(kind, name, uid string) string {
		return ask(`"boundObjectRef":{"apiVersion":"v1","kind":"` + kind + `","name":"` + name + `","uid":"` + uid + `"}`)
	}
	b.refused(services.ReasonNotFound, "serviceaccounts/eve/token", ask(""))
	b.refused(services.ReasonInvalid, "serviceaccounts/bob/token", ask(`"expirationSeconds":599`))
	b.refused(services.ReasonBadRequest, "serviceaccounts/bob/token", bound("Pod", "other", ""))
	b.refused(services.ReasonBadRequest, "serviceaccounts/bob/token", bound("Node", "p", ""))
	b.refused(services.ReasonConflict, "serviceaccounts/bob/token", bound("Pod", "p", "x"))
	answer, err := b.post("serviceaccounts/bob/token", bound("Pod", "p", "u-p"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseSigned(tree.Text(answer, "status", "token"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var standard jwt.Claims
	var whom map[string]any
	if err := token.Claims(&b.key.PublicKey, &standard, &whom); err != nil {
		t.Fatal(err)
	}
	if err := standard.Validate(jwt.Expected{Issuer: "https://api", Subject: "system:serviceaccount:default:bob",
		AnyAudience: jwt.Audience{"https://api"}, Time: now.Add(time.Hour - time.Second)}); err != nil {
		t.Error(err)
	}
	if domain := tree.Object(whom, "kubernetes.io"); tree.Text(domain, "pod", "uid") != "u-p" || tree.Text(domain, "serviceaccount", "uid") != "u" {
		t.Errorf("the token speaks for %v", whom)
	}
	if got := tree.Text(answer, "status", "expirationTimestamp"); got != "2030-01-02T04:04:05Z" {
		t.Errorf("it ends %s", got)
	}
}
