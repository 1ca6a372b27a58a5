package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// lossyHold is how long an answer is held back before its connection breaks.
	lossyHold = 25 * time.Millisecond
	// lossySteps is at how many places of a request its connection breaks, one at a
	// time: the pieces that it is made of differ from request to request.
	lossySteps = 4
)

// lossySuite is a suite whose connections between the front door and the store, and
// between the store and etcd, lose requests and answers.
type lossySuite struct {
	*suite
	*cluster.Cluster
	links     map[string]*lossy.Proxy // by who is reached
	etcd      *clientv3.Client
	namespace string
	serial    int
}

func newLossySuite(t *testing.T) *lossySuite {
	t.Helper()
	x := &lossySuite{suite: newSuite(t, vocabulary.K8s()), links: map[string]*lossy.Proxy{}}
	x.between = func(from, to string) string {
		if to != "etcd" && to != "store" || from != "store" && from != "frontdoor" {
			return x.addresses[to]
		}
		x.links[to] = lossy.New(t, x.addresses[to])
		return x.links[to].Address()
	}
	for _, p := range programs() {
		if len(p.peers) == 0 && !p.offer {
			continue // a client of the API
		}
		if p.name == "admission" { // without lifecycle, there are no accounts
			p.args = []string{"--disable-admission-plugins=ServiceAccount"}
		}
		x.start(t, p)
	}
	x.Cluster = x.connect(t, "frontdoor")
	x.etcd = x.etcdClient(t)
	x.namespace = newNamespace(t, x.Client(t))
	return x
}

// lossyVerb is one kind of write.
type lossyVerb struct {
	name string
	// make makes what the write needs, and the write.
	make func(t *testing.T, x *lossySuite) lossyWrite
}

// lossyWrite is one write: the request, and the objects that it may change.
type lossyWrite struct {
	request cluster.Request
	of      resource.GroupResource
	// name is that of the object, or what the names of the objects begin with.
	name string
	// most is how many changes the request makes when it succeeds.
	most int64
}

// writes returns how often objects were written since they were created, and how many
// there are.
func (x *lossySuite) writes(t *testing.T, w lossyWrite) (written, objects int64) {
	t.Helper()
	prefix := resource.Key{GroupResource: w.of, Namespace: x.namespace, Name: w.name}.Path()
	answer, err := x.etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		written += kv.Version
	}
	return written, answer.Count
}

// fresh returns a name that is not in use.
func (x *lossySuite) fresh() string {
	x.serial++
	return fmt.Sprintf("x%d-", x.serial)
}

// must makes a request that nothing disturbs and returns the object of its answer. The
// connections that were broken before may not be replaced yet.
func (x *lossySuite) must(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	var a cluster.Answer
	eventually(t, "a write is not refused for lack of a connection", func() bool {
		a = x.Ask(t, cluster.Request{Method: method, Path: path, Body: body})
		return a.Code != http.StatusServiceUnavailable
	})
	if a.Code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
	var object map[string]any
	a.Decode(t, &object)
	return object
}

// TestLossyConnections makes writes of all kinds while connections inside of the suite
// break before the request or before the response: no write is applied twice, none returns
// a false conflict, and Retry-After is sent only for writes that were not applied.
func TestLossyConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	x := newLossySuite(t)
	outcomes := map[string]int{}
	for _, verb := range lossyVerbs() {
		t.Run(verb.name, func(t *testing.T) {
			for _, to := range []string{"etcd", "store"} {
				for step := range 2 * lossySteps {
					fault := lossy.Fault{After: step / 2, Kind: lossy.Kind(step % 2), Hold: lossyHold}
					outcomes[x.lose(t, verb, to, fault)]++
				}
			}
		})
	}
	t.Run("counter", x.count)
	t.Run("client-go", x.generate)
	t.Run("kubectl", x.kubectl)
	t.Logf("outcomes: %v", outcomes)
}

// lose makes one write while one of the links fails, and checks what became of it.
func (x *lossySuite) lose(t *testing.T, verb lossyVerb, to string, f lossy.Fault) string {
	t.Helper()
	w := verb.make(t, x)
	written, objects := x.writes(t, w)
	x.links[to].Lose(f)
	a := x.Ask(t, w.request)
	lost := !x.links[to].Armed()
	x.links[to].Disarm()
	nowWritten, nowObjects := x.writes(t, w)
	changes := nowWritten - written
	if nowObjects < objects { // each deleted object had one write
		changes = objects - nowObjects
	}
	again := a.Header.Get("Retry-After")
	said := fmt.Sprint(a.Code)
	var wrong string
	switch {
	case a.Code < 300 && changes != w.most:
		wrong = "done"
	case a.Code < 300:
	case a.Code == http.StatusServiceUnavailable:
		if again == "" || changes != 0 && w.most == 1 || changes > w.most {
			wrong = "not done"
		}
	case a.Code == http.StatusGatewayTimeout:
		if again != "" || changes > w.most {
			wrong = "perhaps done"
		}
	default:
		wrong = "something else"
	}
	if wrong != "" {
		t.Errorf("%+v on the link to %s (it happened: %v): the answer says %s (%d, Retry-After %q), %d changes were made: %.300s",
			f, to, lost, wrong, a.Code, again, changes, a.Body)
	}
	if !lost {
		said += " undisturbed"
	}
	return said
}

// disturb breaks connections again and again until it is stopped.
func (x *lossySuite) disturb() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticks := time.NewTicker(60 * time.Millisecond)
		defer ticks.Stop()
		for i := 0; ; i++ {
			select {
			case <-ended:
				for _, link := range x.links {
					link.Disarm()
				}
				return
			case <-ticks.C:
				if link := x.links[[]string{"etcd", "store"}[i%2]]; !link.Armed() {
					link.Lose(lossy.Fault{After: i % 7, Kind: lossy.Kind(i / 2 % 2), Hold: lossyHold})
				}
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

// count lets clients increment a counter by compare-and-swap: it ends at the number of
// increments that were acknowledged; those of unknown outcome may count.
func (x *lossySuite) count(t *testing.T) {
	path := "/api/v1/namespaces/" + x.namespace + "/configmaps"
	x.must(t, "POST", path, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"counter"},"data":{"n":"0"}}`)
	read := func(ctx context.Context) (version string, n int, ok bool) {
		a, err := x.Do(ctx, cluster.Request{Path: path + "/counter"})
		var object struct {
			Metadata struct{ ResourceVersion string }
			Data     struct {
				N int `json:",string"`
			}
		}
		ok = err == nil && a.Code == http.StatusOK && json.Unmarshal([]byte(a.Body), &object) == nil
		return object.Metadata.ResourceVersion, object.Data.N, ok
	}
	var acked, unknown atomic.Int64
	increment := func() {
		for t.Context().Err() == nil {
			version, n, ok := read(t.Context())
			if !ok {
				continue
			}
			a, err := x.Do(t.Context(), cluster.Request{Method: "PUT", Path: path + "/counter", Body: fmt.Sprintf(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"counter","resourceVersion":%q},"data":{"n":"%d"}}`, version, n+1)})
			switch {
			case err != nil:
				t.Error(err)
				return
			case a.Code == http.StatusOK:
				acked.Add(1)
				return
			case a.Code == http.StatusGatewayTimeout:
				unknown.Add(1)
				return
			case a.Code != http.StatusConflict && a.Code != http.StatusServiceUnavailable:
				t.Errorf("%d %s", a.Code, a.Body)
				return
			}
		}
	}
	stop := x.disturb()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				increment()
			}
		})
	}
	all.Wait()
	stop()
	_, n, _ := read(t.Context())
	t.Logf("the counter is at %d; %d acknowledged, %d unknown", n, acked.Load(), unknown.Load())
	if int64(n) < acked.Load() || int64(n) > acked.Load()+unknown.Load() {
		t.Errorf("the counter is at %d after %d acknowledged increments and %d of unknown outcome", n, acked.Load(), unknown.Load())
	}
}

// generate creates objects with generateName through client-go, which retries on
// Retry-After: each successful call creates one object.
func (x *lossySuite) generate(t *testing.T) {
	in := x.Client(t).Resource(configMaps()).Namespace(x.namespace)
	stop := x.disturb()
	made := map[string]bool{}
	var unknown int64
	for range 40 {
		o := configMap("", "1")
		o.SetName("")
		o.SetGenerateName("generated-")
		got, err := in.Create(t.Context(), o, metav1.CreateOptions{})
		switch {
		case err == nil:
			made[got.GetName()] = true
		case apierrors.IsTimeout(err):
			unknown++
		case !apierrors.IsServiceUnavailable(err):
			t.Error(err)
		}
	}
	stop()
	_, objects := x.writes(t, lossyWrite{of: resource.GroupResource{Resource: "configmaps"}, name: "generated-"})
	t.Logf("%d objects; %d calls succeeded, %d unknown", objects, len(made), unknown)
	if n := int64(len(made)); objects < n || objects > n+unknown {
		t.Errorf("%d objects after %d calls that succeeded and %d of unknown outcome", objects, n, unknown)
	}
	if len(made) < 30 {
		t.Errorf("only %d calls succeeded", len(made))
	}
}

// kubectl creates objects with generateName: each call that succeeds makes one object.
func (x *lossySuite) kubectl(t *testing.T) {
	k := newKubectl(t, x.Cluster)
	stop := x.disturb()
	var made, unknown int64
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		command := k.command(ctx, "create -n "+x.namespace+" -f -")
		command.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"Secret","metadata":{"generateName":"kubectl-"}}`)
		out, err := command.CombinedOutput()
		cancel()
		switch {
		case err == nil:
			made++
		case strings.Contains(string(out), "outcome of the write is not known"):
			unknown++
		default: // it reads much before it writes
			t.Logf("%v: %s", err, out)
		}
	}
	stop()
	_, objects := x.writes(t, lossyWrite{of: resource.GroupResource{Resource: "secrets"}, name: "kubectl-"})
	t.Logf("%d objects; %d calls succeeded, %d unknown", objects, made, unknown)
	if objects < made || objects > made+unknown || made == 0 {
		t.Errorf("%d objects after %d calls that succeeded and %d of unknown outcome", objects, made, unknown)
	}
}

// lossyVerbs returns every kind of write.
func lossyVerbs() (all []lossyVerb) {
	add := func(name string, make func(t *testing.T, x *lossySuite) lossyWrite) {
		all = append(all, lossyVerb{name, make})
	}
	core := func(name string) resource.GroupResource { return resource.GroupResource{Resource: name} }
	path := func(x *lossySuite, plural string) string {
		prefix := "/api/v1"
		if plural == "deployments" {
			prefix = "/apis/apps/v1"
		}
		return prefix + "/namespaces/" + x.namespace + "/" + plural
	}
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"1"}}`
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"ports":[{"port":80}]}}`

	add("create", func(t *testing.T, x *lossySuite) lossyWrite {
		name := x.fresh() + "a"
		return lossyWrite{cluster.Request{Method: "POST", Path: path(x, "configmaps"), Body: fmt.Sprintf(configMap, name)}, core("configmaps"), name, 1}
	})
	add("create with generateName", func(t *testing.T, x *lossySuite) lossyWrite {
		name := x.fresh()
		return lossyWrite{cluster.Request{Method: "POST", Path: path(x, "configmaps"),
			Body: strings.Replace(fmt.Sprintf(configMap, name), `"name"`, `"generateName"`, 1)}, core("configmaps"), name, 1}
	})
	add("create service", func(t *testing.T, x *lossySuite) lossyWrite {
		name := x.fresh() + "s"
		return lossyWrite{cluster.Request{Method: "POST", Path: path(x, "services"), Body: fmt.Sprintf(service, name)}, core("services"), name, 1}
	})
	// on adds a write of one object that is there; %N and %V in the request are its
	// name and version.
	on := func(name, plural, object, method, suffix, mediaType, body string) {
		of := core(plural)
		if plural == "deployments" {
			of.Group = "apps"
		}
		add(name, func(t *testing.T, x *lossySuite) lossyWrite {
			name := x.fresh() + "a"
			made := x.must(t, "POST", path(x, plural), fmt.Sprintf(object, name))
			version, _ := made["metadata"].(map[string]any)["resourceVersion"].(string)
			filled := strings.NewReplacer("%N", name, "%V", version)
			return lossyWrite{cluster.Request{Method: method, Path: path(x, plural) + filled.Replace(suffix), Type: mediaType, Body: filled.Replace(body)}, of, name, 1}
		})
	}
	changed := strings.NewReplacer("%q", `"%N"`, `"a":"1"`, `"a":"2"`).Replace(configMap)
	grown := strings.NewReplacer("%q", `"%N"`, `"replicas":1`, `"replicas":2`).Replace(deployment)
	named := func(body string) string { return strings.Replace(body, `"%N"`, `"%N","resourceVersion":"%V"`, 1) }
	on("put", "configmaps", configMap, "PUT", "/%N", "", changed)
	on("put of a version", "configmaps", configMap, "PUT", "/%N", "", named(changed))
	on("put of a version of a deployment", "deployments", deployment, "PUT", "/%N", "", named(grown))
	on("JSON patch", "deployments", deployment, "PATCH", "/%N", "application/json-patch+json",
		`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"d","image":"i"}}]`)
	on("merge patch", "configmaps", configMap, "PATCH", "/%N", "application/merge-patch+json", `{"data":{"b":"2"}}`)
	on("strategic merge patch", "deployments", deployment, "PATCH", "/%N", "application/strategic-merge-patch+json",
		`{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"i"}]}}}}`)
	on("apply", "configmaps", configMap, "PATCH", "/%N?fieldManager=x&force=true", "application/apply-patch+yaml", changed)
	on("status", "deployments", deployment, "PATCH", "/%N/status", "application/merge-patch+json", `{"status":{"replicas":1}}`)
	on("scale", "deployments", deployment, "PUT", "/%N/scale", "",
		`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"%N"},"spec":{"replicas":3}}`)
	on("delete", "configmaps", configMap, "DELETE", "/%N", "", "")
	on("delete of a version", "configmaps", configMap, "DELETE", "/%N", "",
		`{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"%V"}}`)
	on("delete of a service", "services", service, "DELETE", "/%N", "", "")
	on("binding", "pods", pod, "POST", "/%N/binding", "",
		`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%N"},"target":{"kind":"Node","name":"n1"}}`)
	on("eviction", "pods", pod, "POST", "/%N/eviction", "", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%N"}}`)
	add("delete of a collection", func(t *testing.T, x *lossySuite) lossyWrite {
		prefix := x.fresh()
		for _, name := range []string{"a", "b", "c"} {
			x.must(t, "POST", path(x, "configmaps"), strings.Replace(fmt.Sprintf(configMap, prefix+name), `"metadata":{`, `"metadata":{"labels":{"of":"`+prefix+`1"},`, 1))
		}
		return lossyWrite{cluster.Request{Method: "DELETE", Path: path(x, "configmaps") + "?labelSelector=of=" + prefix + "1"}, core("configmaps"), prefix, 3}
	})
	return all
}
