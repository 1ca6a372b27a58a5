package compose

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	namespace = "default"
	writers   = 4
	// recovery is the maximum time after a fault until writes and their events work again.
	recovery = time.Minute
)

// traffic writes continuously and watches the written objects.
type traffic struct {
	client kubernetes.Interface

	mu           sync.Mutex
	acknowledged map[string]bool      // configmaps whose creation was acknowledged
	seen         map[string]time.Time // added events of the informer
	doubled      []string
	longest      time.Duration // between two acknowledged writes
	last         time.Time     // acknowledged write
	failures     map[string]int
}

// testFaults injects the faults, one after the other, and checks after each that a new
// write is acknowledged and its event arrives.
func (c *containers) testFaults(t *testing.T) {
	traffic := c.newTraffic(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() { traffic.write(ctx, i) })
	}
	compose := func(args ...string) func() {
		return func() { c.run(t, "./compose", args...) }
	}
	first := func(verb, service string) func() {
		return func() {
			id := c.of(t, service)[0]
			// A busy container cannot always be frozen at the first attempt.
			for range 9 {
				if exec.Command("docker", verb, id).Run() == nil {
					return
				}
			}
			c.run(t, "docker", verb, id)
		}
	}
	kill := func(service string) func() {
		var id string
		return func() {
			if id == "" {
				id = c.of(t, service)[0]
				c.run(t, "docker", "kill", id)
				return
			}
			c.run(t, "docker", "start", id)
		}
	}
	for _, f := range []struct {
		name  string
		begin func()
		hold  time.Duration // how long the fault lasts
		end   func()
		// served is true if writes must succeed during the fault.
		served bool
	}{
		{"scale up", compose("up", "-d", "--no-recreate", "--scale", "frontdoor=3", "--scale", "authz=2", "--scale", "store=2", "--scale", "authn=2", "--scale", "admission=2", "--scale", "watch-hub=2"), 5 * time.Second, nil, true},
		{"etcd member killed", nil, 10 * time.Second, nil, true},
		{"etcd member paused", first("pause", "etcd-2"), 20 * time.Second, first("unpause", "etcd-2"), true},
		{"NATS server killed", nil, 10 * time.Second, nil, true},
		{"NATS server paused", first("pause", "nats-1"), 20 * time.Second, first("unpause", "nats-1"), true},
		{"front door killed", nil, 10 * time.Second, nil, true},
		{"front door paused", first("pause", "frontdoor"), 10 * time.Second, first("unpause", "frontdoor"), true},
		{"store killed", nil, 10 * time.Second, nil, true},
		{"store paused", first("pause", "store"), 10 * time.Second, first("unpause", "store"), true},
		{"hub killed", nil, 10 * time.Second, nil, true},
		{"hub paused", first("pause", "watch-hub"), 10 * time.Second, first("unpause", "watch-hub"), true},
		{"authz killed", nil, 10 * time.Second, nil, true},
		{"authn killed", nil, 10 * time.Second, nil, true},
		{"admission paused", first("pause", "admission"), 10 * time.Second, first("unpause", "admission"), true},
		{"two etcd members paused", func() { first("pause", "etcd-1")(); first("pause", "etcd-3")() }, 10 * time.Second,
			func() { first("unpause", "etcd-1")(); first("unpause", "etcd-3")() }, false},
		{"scale down", compose("up", "-d", "--no-recreate", "--scale", "frontdoor=1", "--scale", "authz=1", "--scale", "store=1", "--scale", "authn=1", "--scale", "admission=1", "--scale", "watch-hub=1"), time.Second, nil, true},
		{"all killed", compose("kill"), 2 * time.Second, compose("up", "-d"), false},
	} {
		if service, ok := killed(f.name); ok {
			f.begin = kill(service)
			f.end = f.begin
		}
		began := time.Now()
		traffic.forget()
		f.begin()
		if f.served {
			traffic.awaitEvent(t, f.name)
			t.Logf("%s: write and event after %v", f.name, time.Since(began).Round(10*time.Millisecond))
		}
		<-time.After(max(0, f.hold-time.Since(began)))
		if f.end != nil {
			f.end()
		}
		ended := time.Now()
		traffic.awaitEvent(t, f.name+", ended")
		t.Logf("%s: after its end %v; the longest time without a write: %v", f.name, time.Since(ended).Round(10*time.Millisecond), traffic.gap().Round(10*time.Millisecond))
	}
	cancel()
	group.Wait()
	traffic.check(t)
}

// killed returns the service that a fault kills.
func killed(fault string) (service string, ok bool) {
	what, ok := strings.CutSuffix(fault, " killed")
	service = map[string]string{"etcd member": "etcd-1", "NATS server": "nats-2", "front door": "frontdoor", "store": "store",
		"hub": "watch-hub", "authz": "authz", "authn": "authn"}[what]
	return service, ok && service != ""
}

func (c *containers) newTraffic(t *testing.T) *traffic {
	t.Helper()
	config := rest.CopyConfig(c.config)
	config.Timeout = 15 * time.Second
	tr := &traffic{client: kubernetes.NewForConfigOrDie(config), acknowledged: map[string]bool{}, seen: map[string]time.Time{}, failures: map[string]int{}, last: time.Now()}
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		name := o.(*corev1.ConfigMap).Name
		if _, again := tr.seen[name]; again {
			tr.doubled = append(tr.doubled, name)
		}
		tr.seen[name] = time.Now()
	}}); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
	return tr
}

// write creates ConfigMaps. It retries each until the creation is acknowledged, or fails
// because an earlier attempt without a response has created it.
func (tr *traffic) write(ctx context.Context, writer int) {
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d-%05d", writer, i)}}
		for ctx.Err() == nil {
			_, err := tr.client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				tr.acknowledge(object.Name)
				break
			}
			tr.fail(err)
			<-time.After(50 * time.Millisecond)
		}
		<-time.After(100 * time.Millisecond)
	}
}

func (tr *traffic) acknowledge(name string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.acknowledged[name] = true
	now := time.Now()
	tr.longest = max(tr.longest, now.Sub(tr.last))
	tr.last = now
}

func (tr *traffic) fail(err error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.failures[string(apierrors.ReasonForError(err))]++
}

func (tr *traffic) forget() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.longest = 0
}

func (tr *traffic) gap() time.Duration {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.longest
}

// awaitEvent writes a new object and waits for its event.
func (tr *traffic) awaitEvent(t *testing.T, fault string) {
	t.Helper()
	deadline := time.Now().Add(recovery)
	name := fmt.Sprintf("event-%d", time.Now().UnixNano())
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	var err error
	for time.Now().Before(deadline) {
		if _, err = tr.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err == nil || apierrors.IsAlreadyExists(err) {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	for time.Now().Before(deadline) {
		tr.mu.Lock()
		_, seen := tr.seen[name]
		tr.mu.Unlock()
		if seen {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Errorf("%s: no write with its event within %v; the last error: %v", fault, recovery, err)
}

// check compares the acknowledged objects with the existing ones and with the events.
func (tr *traffic) check(t *testing.T) {
	t.Helper()
	list, err := tr.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, o := range list.Items {
		there[o.Name] = true
	}
	missing := func() (n int) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for name := range there {
			if _, seen := tr.seen[name]; !seen {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(recovery); missing() > 0 && time.Now().Before(deadline); {
		<-time.After(100 * time.Millisecond)
	}
	if n := missing(); n > 0 {
		t.Errorf("%d objects were never seen by the informer", n)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for name := range tr.acknowledged {
		if !there[name] {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
	if len(tr.doubled) > 0 {
		t.Errorf("%d objects were added twice: %q", len(tr.doubled), tr.doubled[:min(5, len(tr.doubled))])
	}
	t.Logf("%d writes acknowledged; failed attempts by reason: %v", len(tr.acknowledged), tr.failures)
}
