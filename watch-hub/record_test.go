package watchhub

import (
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestOverridesAreRecorded: the hub that publishes records its overrides in the main etcd, also when another hub with
// others takes over, and removes the record when there are none.
func TestOverridesAreRecorded(t *testing.T) {
	b := &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}
	recorded := func() string {
		answer, err := b.etcd.Client.Get(t.Context(), etcd.RecordKey)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Kvs) == 0 {
			return ""
		}
		found, err := etcd.ParseRecord(answer.Kvs[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, one := range found {
			texts = append(texts, one.String())
		}
		return strings.Join(texts, " ")
	}
	second := testbed.StartEtcd(t)
	leases := resource.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	events := resource.GroupResource{Resource: "events"}
	with := func(types ...resource.GroupResource) func(*Config) {
		return func(c *Config) {
			if len(types) > 0 {
				c.Overrides = []etcd.Override{{Name: "second", Types: types, Client: second.Client, Servers: []string{"https://a:1", "https://b:1"}}}
			}
		}
	}
	for _, step := range []struct {
		types []resource.GroupResource
		want  string
	}{
		{nil, ""},
		{[]resource.GroupResource{leases, events}, "/events#https://a:1;https://b:1,coordination.k8s.io/leases#https://a:1;https://b:1"},
		{[]resource.GroupResource{leases}, "coordination.k8s.io/leases#https://a:1;https://b:1"},
		{nil, ""},
	} {
		hub := startHub(t, b.etcd, b.nats.Connect(), with(step.types...))
		b.untilPublishing(t, hub)
		for deadline := time.Now().Add(followTimeout); recorded() != step.want; retry.Pause(t.Context(), 5*time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("recorded %q, want %q", recorded(), step.want)
			}
		}
		hub.stop()
	}
}
