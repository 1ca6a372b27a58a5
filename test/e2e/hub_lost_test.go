package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// publisherKey is where hubs keep who of them publishes.
	publisherKey = "/portico/hub/publisher"
	// lostHub is less than the six seconds after which a follower that gets nothing asks, and than
	// gRPC needs to give up a frozen hub. The lease of a hub would end after five, so the test renews
	// it. What it really takes is in the log of the test.
	lostHub = 5 * time.Second
	// lostHubBound is what it may take where nothing else runs; see -bounds.
	lostHubBound = time.Second
)

// TestLostHub kills or freezes the hub that publishes, and freezes the other one, while a client
// writes, another one watches, and others begin to watch what nobody has watched before.
func TestLostHub(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts nine processes")
	}
	m := &measured{}
	m.rounds(t, lostHubBound, func(t *testing.T) { loseHubs(t, m) })
}

// loseHubs is one round of TestLostHub.
func loseHubs(t *testing.T, m *measured) {
	s := newSuite(t, vocabulary.K8s())
	hubs := map[string]program{}
	s.add(t, "watch-hub", "watch-hub-2")
	for _, p := range programs() {
		switch p.name {
		case "watch-hub":
			for _, name := range []string{"watch-hub", "watch-hub-2"} {
				p.replica, p.args = name, []string{"--watch-hub-name=" + name}
				hubs[name] = p
				s.start(t, p)
			}
		case "admission":
			p.args = []string{"--disable-admission-plugins=ServiceAccount"}
			s.start(t, p)
		default:
			if p.offer || len(p.peers) > 0 {
				s.start(t, p)
			}
		}
	}
	c := s.connect(t, "frontdoor")
	for i, how := range []string{"killed", "frozen", "standby frozen"} {
		lost := s.publisher(t)
		if how == "standby frozen" {
			for name := range hubs {
				if name != s.publisher(t) {
					lost = name
				}
			}
		}
		t.Run(how, func(t *testing.T) { s.loseHub(t, c, loss{hub: lost, how: how, fresh: fresh()[i], measured: m}) })
		if how == "killed" {
			s.start(t, hubs[lost])
			eventually(t, lost+" is back", func() bool { return c.Ask(t, cluster.Request{Path: "/readyz"}).Code == http.StatusOK })
		}
	}
	for _, p := range s.processes {
		p.stop(t) // before the next round
	}
}

// publisher returns the hub that publishes.
func (s *suite) publisher(t *testing.T) (name string) {
	t.Helper()
	etcd := s.etcdClient(t)
	eventually(t, "a hub publishes", func() bool {
		found, err := etcd.Get(t.Context(), publisherKey)
		if err == nil && len(found.Kvs) == 1 {
			name = string(found.Kvs[0].Value)
		}
		return name != ""
	})
	return name
}

// keepLease renews the lease of the hub that publishes until ctx ends, as if it was alive.
func (s *suite) keepLease(ctx context.Context, t *testing.T) {
	t.Helper()
	etcd := s.etcdClient(t)
	found, err := etcd.Get(ctx, publisherKey)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("no hub publishes: %v", err)
	}
	renewed, err := etcd.KeepAlive(ctx, clientv3.LeaseID(found.Kvs[0].Lease))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range renewed {
		}
	}()
}

// fresh returns types that nothing follows before they are watched, three times.
func fresh() [3][]string {
	return [3][]string{
		{"/api/v1/namespaces/%s/endpoints", "/api/v1/namespaces/%s/podtemplates", "/apis/apps/v1/namespaces/%s/controllerrevisions",
			"/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"},
		{"/api/v1/namespaces/%s/secrets", "/apis/coordination.k8s.io/v1/namespaces/%s/leases", "/apis/apps/v1/namespaces/%s/daemonsets",
			"/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"},
		{"/apis/apps/v1/namespaces/%s/replicasets", "/apis/apps/v1/namespaces/%s/statefulsets", "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
			"/apis/networking.k8s.io/v1/namespaces/%s/ingresses"},
	}
}

// loss is what happens to a hub, and the types that are watched meanwhile.
type loss struct {
	hub, how string
	fresh    []string
	measured *measured
}

// loseHub measures how long events of a watch, and the beginning of others, are late.
func (s *suite) loseHub(t *testing.T, c *cluster.Cluster, l loss) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	at := newArrivals()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched, err := c.Send(t.Context(), cluster.Request{Path: "/api/v1/namespaces/" + namespace + "/configmaps?watch=1"}) // outlives the writes
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Body.Close()
	go at.read(bufio.NewScanner(watched.Body))
	var writing sync.WaitGroup
	defer writing.Wait()
	defer cancel()
	names := make(chan string, 10_000)
	writing.Go(func() {
		defer close(names)
		for n := 0; ctx.Err() == nil; n++ {
			name := fmt.Sprintf("n%d", n)
			if _, err := client.Resource(configMaps()).Namespace(namespace).Create(ctx, configMap(name, "1"), metav1.CreateOptions{}); err == nil {
				at.wrote(name)
				names <- name
			}
			wait(t, 20*time.Millisecond)
		}
	})
	wait(t, time.Second)
	s.keepLease(ctx, t)
	began := time.Now()
	if hub := s.processes[l.hub]; l.how != "killed" {
		if err := hub.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hub.cmd.Process.Signal(syscall.SIGCONT) }()
	} else {
		hub.kill()
	}
	slowest := time.Duration(0)
	for _, path := range l.fresh {
		slowest = max(slowest, begins(t, c, fmt.Sprintf(path, namespace)))
	}
	eventually(t, "another hub publishes", func() bool { return s.publisher(t) != l.hub })
	took := time.Since(began)
	wait(t, time.Second)
	cancel()
	var last string
	for last = range names {
	}
	late := at.latest(t, last)
	t.Logf("another hub publishes after %v at most; an event came %v late at most, the first event of a new watch %v",
		took.Round(time.Millisecond), late.Round(time.Millisecond), slowest.Round(time.Millisecond))
	l.measured.add("hub "+l.how+": latest event", late)
	l.measured.add("hub "+l.how+": slowest first event of a new watch", slowest)
	if late > lostHub || slowest > lostHub {
		t.Errorf("an event or a watch waited for more than %v", lostHub)
	}
}

// begins creates an object, watches its type from before on, and returns how long the
// event takes.
func begins(t *testing.T, c *cluster.Cluster, path string) time.Duration {
	t.Helper()
	before := c.Ask(t, cluster.Request{Path: path})
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	before.Decode(t, &list)
	if made := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: path, Body: freshObject(path)}); made.Code >= 300 {
		t.Fatalf("%s: %d %s", path, made.Code, made.Body)
	}
	began := time.Now()
	watched, err := c.Send(t.Context(), cluster.Request{Path: path + "?watch=1&timeoutSeconds=30&resourceVersion=" + list.Metadata.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Body.Close()
	if line, err := bufio.NewReader(watched.Body).ReadString('\n'); err != nil || !strings.Contains(line, "ADDED") {
		t.Fatalf("%s: %v %s", path, err, line)
	}
	return time.Since(began)
}

// freshObject returns a small valid object of one of the types of fresh.
func freshObject(path string) string {
	const meta = `"metadata":{"name":"a"}`
	selector := `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a:1"}]}}`
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "podtemplates":
		return `{` + meta + `,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a:1"}]}}}`
	case "controllerrevisions":
		return `{` + meta + `,"revision":1,"data":{"a":1}}`
	case "networkpolicies":
		return `{` + meta + `,"spec":{"podSelector":{}}}`
	case "daemonsets", "replicasets", "statefulsets":
		return `{` + meta + `,"spec":{` + selector + `}}`
	case "poddisruptionbudgets":
		return `{` + meta + `,"spec":{"selector":{}}}`
	case "ingresses":
		return `{` + meta + `,"spec":{"defaultBackend":{"service":{"name":"a","port":{"number":80}}}}}`
	case "endpointslices":
		return `{` + meta + `,"addressType":"IPv4","endpoints":[]}`
	}
	return `{` + meta + `}`
}

// arrivals compares when writes were acknowledged with when a watch has shown them.
type arrivals struct {
	mu             sync.Mutex
	written, shown map[string]time.Time
}

func newArrivals() *arrivals {
	return &arrivals{written: map[string]time.Time{}, shown: map[string]time.Time{}}
}

func (a *arrivals) wrote(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written[name] = time.Now()
}

func (a *arrivals) read(lines *bufio.Scanner) {
	for lines.Scan() {
		_, after, _ := strings.Cut(lines.Text(), `"name":"`)
		name, _, _ := strings.Cut(after, `"`)
		a.mu.Lock()
		if _, ok := a.shown[name]; !ok {
			a.shown[name] = time.Now()
		}
		a.mu.Unlock()
	}
}

// latest waits until the last write is shown, and returns the longest delay.
func (a *arrivals) latest(t *testing.T, last string) (late time.Duration) {
	t.Helper()
	eventually(t, "the watch shows the last write", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.shown[last].IsZero()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, when := range a.written {
		late = max(late, a.shown[name].Sub(when))
	}
	return late
}
