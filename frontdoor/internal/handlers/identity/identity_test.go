package identity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestOver: only Leases of front doors count, and only after they have not been renewed for
// their duration.
func TestOver(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	leases, _ := types.ByKind("coordination.k8s.io", "v1", "Lease")
	k := New(Config{Vocabulary: vocabulary.K8s(), Store: fake.New(t).Store()})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k.now = func() time.Time { return start.Add(lasts + time.Second) }
	for name, renewed := range map[string]time.Time{"apiserver-old": start, "apiserver-new": start.Add(time.Minute), "other": start} {
		labels := map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}
		if name == "other" {
			labels = map[string]string{}
		}
		content, err := json.Marshal(map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": map[string]any{"name": name, "namespace": "kube-system", "labels": labels},
			"spec":     map[string]any{"renewTime": renewed.Format("2006-01-02T15:04:05.000000Z"), "leaseDurationSeconds": int(lasts.Seconds())}})
		if err != nil {
			t.Fatal(err)
		}
		key := resource.Key{GroupResource: leases.GroupResource(), Namespace: "kube-system", Name: name}
		if _, err := k.Store.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: content, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	over, err := k.over(t.Context(), leases)
	if err != nil || len(over) != 1 || over[0].Key.Name != "apiserver-old" {
		t.Errorf("over: %v, %v", over, err)
	}
	k.Host, k.Address = "host", "10.0.0.1:6443"
	if name := k.name(); name == New(Config{Host: "host", Address: "10.0.0.1:6444"}).name() || len(name) != len("apiserver-")+26 {
		t.Errorf("name %q", name)
	}
}
