package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	recorders = 50
	informers = 50
	writers   = 4
	// writePause is what a writer waits between two writes.
	writePause = 50 * time.Millisecond
	// faultTime bounds how long one fault lasts: when writes still go through, it
	// ends after some of them.
	faultTime = 2 * time.Second
	// informerPatience is more than the longest pause of the stock informers, which
	// they double up to a minute with every fault that they meet within two.
	informerPatience = 90 * time.Second
)

// TestFaults restarts services and breaks the connections between them while 100 clients
// watch and others write: every watcher receives exactly the changes of etcd's history, in
// order, and never a 410. PORTICO_FAULT_RUNS repeats it, each time with other faults.
func TestFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	runs, _ := strconv.Atoi(os.Getenv("PORTICO_FAULT_RUNS"))
	for run := range max(1, runs) {
		t.Run(fmt.Sprint(run), func(t *testing.T) { newTrial(t).run(t) })
	}
}

// trial is a suite with two replicas of whatever may have several, links between
// all of them, and its clients.
type trial struct {
	*suite
	random    *rand.Rand
	programs  map[string]program // by replica
	links     map[[2]string]*lossy.Proxy
	doors     []*cluster.Cluster // reached directly
	crossed   []*cluster.Cluster // the same, reached over a link
	etcd      *clientv3.Client
	version   int64 // when the recorders began
	recorders []*recorder
	reflected []*reflected
	requests  requests // of the informers
	writing   atomic.Bool
	attempts  atomic.Int64
	writes    atomic.Int64
}

// replicated returns the programs as they run here. The windows of the second
// replicas are so small that much has to be fetched from further behind.
func replicated() (all []program) {
	for _, p := range programs() {
		if len(p.peers) == 0 && !p.offer {
			continue // a client of the API
		}
		p.replica = p.name
		first := p
		switch p.name {
		case "watch-hub":
			first.args = []string{"--watch-hub-name=one"}
		case "admission": // without lifecycle, which is a client, there are no accounts
			first.args = []string{"--disable-admission-plugins=ServiceAccount"}
		}
		all = append(all, first)
		p.replica = p.name + "-2"
		switch p.name {
		case "store":
			all = append(all, p)
		case "watch-hub":
			p.args = []string{"--watch-hub-name=two", "--watch-history-bytes=50000"}
			all = append(all, p)
		case "frontdoor":
			p.args = []string{"--feed-bytes=20000"}
			all = append(all, p)
		}
	}
	return all
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	x := startTrial(t, replicated(), nil, true)
	for _, door := range x.replicas["frontdoor"] {
		direct := x.connect(t, door)
		crossed := *direct
		crossed.URL = "https://" + x.between("client", door)
		x.doors, x.crossed = append(x.doors, direct), append(x.crossed, &crossed)
	}
	return x
}

// startTrial starts programs, with links between all of them if they are linked, and
// knows others that are not started.
func startTrial(t *testing.T, started, others []program, linked bool) *trial {
	t.Helper()
	x := &trial{random: seeded(t), suite: newSuite(t, vocabulary.K8s()), programs: map[string]program{}, links: map[[2]string]*lossy.Proxy{}}
	for _, p := range slices.Concat(started, others) {
		x.programs[p.replica] = p
		if p.replica != p.name {
			x.add(t, p.name, p.replica)
		}
	}
	x.between = func(from, to string) string {
		pair := [2]string{from, to}
		switch {
		case !linked:
			return x.addresses[to]
		case x.links[pair] == nil:
			x.links[pair] = lossy.New(t, x.addresses[to])
		}
		return x.links[pair].Address()
	}
	for _, p := range started {
		x.start(t, p)
	}
	x.etcd = x.etcdClient(t)
	return x
}

// run strikes twice: first only what informers must not notice at all.
func (x *trial) run(t *testing.T) {
	client := x.doors[0].Client(t)
	spaces := []string{newNamespace(t, client), newNamespace(t, client)}
	x.version = x.head(t)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	x.watch(ctx, t, &watching, spaces)
	stop := x.startWriters(ctx, t, spaces)
	defer stop()
	x.await(t, 2*writers)
	before := x.requests.sum()
	for _, f := range x.quiet() {
		x.strike(t, f)
	}
	x.catchUp(t, spaces)
	if relists := x.requests.sum() - before; relists > 0 {
		t.Errorf("the informers have listed %d times while only hubs and NATS were struck", relists)
	}
	for _, f := range x.loud() {
		x.strike(t, f)
	}
	stop()
	x.catchUp(t, spaces)
	t.Logf("%d of %d writes went through", x.writes.Load(), x.attempts.Load())
}

// head returns the newest revision.
func (x *trial) head(t *testing.T) int64 {
	t.Helper()
	response, err := x.etcd.Get(t.Context(), "none")
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// kinds are the resource types that the clients write and watch.
func kinds() []sample {
	meta := func(apiVersion, kind string, more map[string]any) map[string]any {
		o := map[string]any{"apiVersion": apiVersion, "kind": kind}
		for name, value := range more {
			o[name] = value
		}
		return o
	}
	core := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	return []sample{
		{core("configmaps"), true, meta("v1", "ConfigMap", nil), nil},
		{core("secrets"), true, meta("v1", "Secret", nil), nil},
		{core("pods"), true, meta("v1", "Pod", map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "a", "image": "a:1"}}}}), nil},
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, true,
			meta("coordination.k8s.io/v1", "Lease", nil), nil},
	}
}

// views returns n of them, of all kinds and selections alike.
func views(n int, spaces []string) (all []view) {
	for i := range n {
		k, v := kinds()[i%len(kinds())], view{}
		switch v.resource = k.resource; i / len(kinds()) % 6 {
		case 1:
			v.namespace = spaces[0]
		case 2:
			v.label = "tier=x"
		case 3:
			v.namespace, v.label = spaces[1], "tier in (x,y),tier!=y"
		case 4:
			v.namespace, v.field = spaces[0], "metadata.name=o1"
		case 5:
			v.field = "metadata.name!=o1"
			if k.resource.Resource == "pods" {
				v.field = "spec.nodeName=n1"
			}
		}
		all = append(all, v)
	}
	return all
}

// watch starts all watchers.
func (x *trial) watch(ctx context.Context, t *testing.T, group *sync.WaitGroup, spaces []string) {
	t.Helper()
	for i, v := range views(recorders, spaces) {
		r := &recorder{view: v, cluster: x.crossed[i%len(x.crossed)], version: x.version}
		if i%3 == 0 {
			r.seconds = 1 + i%7
		}
		x.recorders = append(x.recorders, r)
		group.Go(func() { r.run(ctx) })
	}
	var clients []informerClients
	for _, door := range x.doors {
		clients = append(clients, newInformerClients(door, &x.requests))
	}
	for i, v := range views(informers, spaces) {
		r := newReflected(t, clients[i%len(clients)], v, i)
		x.reflected = append(x.reflected, r)
		group.Go(func() { r.informer.RunWithContext(ctx) })
	}
	for _, r := range x.reflected {
		eventually(t, "an informer of "+r.view.String()+" is filled", r.informer.HasSynced)
	}
}

// startWriters lets clients write until they are stopped.
func (x *trial) startWriters(ctx context.Context, t *testing.T, spaces []string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	x.writing.Store(true)
	for i := range writers {
		random, in := rand.New(rand.NewPCG(x.random.Uint64(), 0)), x.doors[i%len(x.doors)].Client(t)
		group.Go(func() {
			ticks := time.NewTicker(writePause)
			defer ticks.Stop()
			for ; ctx.Err() == nil; <-ticks.C {
				x.write(ctx, in, random, spaces)
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
		x.writing.Store(false)
	}
}

// write makes one change, whose outcome etcd's history determines.
func (x *trial) write(ctx context.Context, in dynamic.Interface, random *rand.Rand, spaces []string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	k, name := kinds()[random.IntN(len(kinds()))], fmt.Sprintf("o%d", random.IntN(6))
	objects := in.Resource(k.resource).Namespace(spaces[random.IntN(len(spaces))])
	tier, now := string("xyz"[random.IntN(3)]), int64(0)
	defer x.attempts.Add(1)
	if random.IntN(5) == 0 {
		if objects.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}) == nil {
			x.writes.Add(1)
		}
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{"tier":%q},"annotations":{"n":"%d"}}}`, tier, random.IntN(1000))
	_, err := objects.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		o := k.named(name)
		o.SetLabels(map[string]string{"tier": tier})
		if k.resource.Resource == "pods" {
			_ = unstructured.SetNestedField(o.Object, fmt.Sprintf("n%d", random.IntN(3)), "spec", "nodeName")
		}
		_, err = objects.Create(ctx, o, metav1.CreateOptions{})
	}
	if err == nil {
		x.writes.Add(1)
	}
}

// await waits for writes that go through.
func (x *trial) await(t *testing.T, n int64) {
	t.Helper()
	until := x.writes.Load() + n
	eventually(t, "writes go through", func() bool { return x.writes.Load() >= until })
}

// during waits for some writes, or until the time of a fault is over.
func (x *trial) during(t *testing.T) {
	t.Helper()
	until, end := x.writes.Load()+10+x.random.Int64N(60), time.After(faultTime)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for x.writes.Load() < until {
		select {
		case <-end:
			return
		case <-ticks.C:
		case <-t.Context().Done():
			return
		}
	}
}

// catchUp makes a last change of each kind and waits until every watcher has seen
// what etcd says until then.
func (x *trial) catchUp(t *testing.T, spaces []string) {
	t.Helper()
	for i, door := range x.replicas["frontdoor"] {
		x.processes[door].await(t, x.doors[i]) // it may just have been started
	}
	histories, events := map[string]truth{}, 0
	for _, k := range kinds() {
		last := k.named("")
		last.SetGenerateName("end-")
		made, err := x.doors[0].Client(t).Resource(k.resource).Namespace(spaces[0]).Create(t.Context(), last, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		through, _ := strconv.ParseInt(made.GetResourceVersion(), 10, 64)
		histories[k.resource.Resource] = readTruth(t, x.etcd, k.resource, x.version, through)
	}
	for _, r := range x.recorders {
		want := histories[r.view.resource.Resource].events(r.view)
		events += len(want)
		eventually(t, fmt.Sprintf("a watcher of %s sees all %d events", r.view, len(want)), func() bool { return r.has(len(want)) })
		if r.check(t, want); t.Failed() {
			t.FailNow() // the others would report the same
		}
	}
	for _, r := range x.reflected {
		want := histories[r.view.resource.Resource].events(r.view)
		within(t, informerPatience, "an informer of "+r.view.String()+" sees the last event", func() bool { return len(want) == 0 || r.through() >= want[len(want)-1].revision })
	}
	t.Logf("%d events of %d watchers compared", events, len(x.recorders))
	if x.writing.Load() {
		return
	}
	for _, r := range x.reflected {
		r.check(t, x.version, histories[r.view.resource.Resource].objects(r.view))
	}
}
