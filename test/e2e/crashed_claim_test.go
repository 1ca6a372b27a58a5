package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// freeAgain is how long an address stays claimed at most after the front door that claimed it
	// has crashed before it stored the Service.
	freeAgain = 30 * time.Second
	// creators are so many that a crash hits some between the claim and the Service.
	creators = 16
	// settled is how long a store may go on with a request of a front door that is gone.
	settled = time.Second
)

// TestCrashedClaim kills a front door while it creates Services, and takes a cluster IP that it
// has claimed for a Service that was never stored, through another front door.
func TestCrashedClaim(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for two passes of the repair")
	}
	m := &measured{}
	var c *claims
	m.rounds(t, freeAgain, func(t *testing.T) {
		if c == nil {
			c = newClaims(t)
		}
		m.add("address free after the crash of its create", c.round(t))
	})
}

// claims is a suite with two front doors, one of which crashes.
type claims struct {
	*suite
	etcd    *clientv3.Client
	crashes program
	runs    int // of creators
}

func newClaims(t *testing.T) *claims {
	t.Helper()
	c := &claims{suite: newSuite(t, vocabulary.K8s())}
	c.add(t, "frontdoor", "frontdoor-2")
	for _, p := range programs() {
		switch {
		case p.name == "admission":
			p.args = []string{"--disable-admission-plugins=ServiceAccount"}
		case p.name == "frontdoor":
			p.args = []string{"--service-cluster-ip-range=10.0.0.0/16"}
			c.crashes = p
			c.crashes.replica = "frontdoor-2"
		case !p.offer:
			continue
		}
		c.start(t, p)
	}
	c.connect(t, "frontdoor")
	c.etcd = c.etcdClient(t)
	return c
}

// round returns how long after the crash an address that it left claimed was free again.
func (c *claims) round(t *testing.T) time.Duration {
	t.Helper()
	var crashed time.Time
	var address string
	within(t, 4*patience, "a crash leaves an address claimed", func() bool {
		crashed = c.crash(t)
		wait(t, settled)
		address = c.unused(t)
		return address != ""
	})
	in := kubernetes.NewForConfigOrDie(protobuf(c.connect(t, "frontdoor"))).CoreV1().Services("default")
	wanted := &corev1.Service{ObjectMeta: metav1.ObjectMeta{GenerateName: "taken-"}, Spec: corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := in.Create(t.Context(), wanted, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("the claim of %s holds nobody off: %v", address, err)
	}
	within(t, 2*freeAgain, address+" is free", func() bool {
		_, err := in.Create(t.Context(), wanted, metav1.CreateOptions{})
		if err != nil && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	took := time.Since(crashed)
	t.Logf("%s was free %v after the crash", address, took.Round(time.Millisecond))
	return took
}

// crash lets the second front door create Services, kills it meanwhile and returns when.
func (c *claims) crash(t *testing.T) time.Time {
	t.Helper()
	c.start(t, c.crashes)
	in := kubernetes.NewForConfigOrDie(protobuf(c.connect(t, "frontdoor-2"))).CoreV1().Services("default")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var group sync.WaitGroup
	made := make(chan struct{}, creators)
	for i := range creators {
		c.runs++
		run := c.runs
		group.Go(func() {
			for n := 0; ; n++ {
				service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d-%d", run, n)}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
				if _, err := in.Create(ctx, service, metav1.CreateOptions{}); err != nil {
					return // the front door is gone
				}
				if i == 0 {
					select {
					case made <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	for range 3 {
		select {
		case <-made:
		case <-ctx.Done():
			t.Fatal("no Service is created")
		}
	}
	c.processes["frontdoor-2"].kill()
	now := time.Now()
	cancel()
	group.Wait()
	return now
}

// unused returns the address that was claimed last for a Service that is not stored; empty if
// there is none.
func (c *claims) unused(t *testing.T) (address string) {
	t.Helper()
	claimed, stored := c.records(t, resource.GroupResource{Group: "portico", Resource: "cluster-ips"}), map[string]bool{}
	for _, r := range c.records(t, resource.GroupResource{Resource: "services"}) {
		stored[r.Metadata.UID] = true
	}
	for _, r := range claimed {
		if !stored[r.Owner.UID] {
			address = r.Metadata.Name
		}
	}
	return address
}

// record is a claim or a Service in etcd.
type record struct {
	Metadata struct{ Name, UID string }
	Owner    struct{ UID string }
}

// records returns what is stored of one type, in the order of its creation.
func (c *claims) records(t *testing.T, of resource.GroupResource) (all []record) {
	t.Helper()
	found, err := c.etcd.Get(t.Context(), of.Path(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		stored, err := resource.DecodeRecord(kv.Value)
		if err != nil {
			t.Fatalf("%s: %v", kv.Key, err)
		}
		var r record
		if err := json.Unmarshal(stored.JSON, &r); err != nil {
			t.Fatalf("%s: %v", kv.Key, err)
		}
		all = append(all, r)
	}
	return all
}
