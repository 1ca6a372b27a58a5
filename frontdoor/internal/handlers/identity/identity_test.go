package identity

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestOver: only Leases of front doors count, and only after they have not been renewed for
// their duration, and for a while by the clock of this front door. So one whose clock is a day ahead
// deletes no Lease of those that run.
func TestOver(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	leases, _ := types.ByKind("coordination.k8s.io", "v1", "Lease")
	k := New(Config{Vocabulary: vocabulary.K8s(), Store: fake.New(t).Store()})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start.Add(lasts + time.Second)
	k.now = func() time.Time { return now }
	keys := map[string]resource.Key{}
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
		keys[name] = key
		if _, err := k.Store.Create(t.Context(), services.CreateRequest{Key: key, Content: services.Content{JSON: content, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(names ...string) {
		t.Helper()
		over, err := k.over(t.Context(), leases)
		var got []string
		for _, o := range over {
			got = append(got, o.Key.Name)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, names) {
			t.Errorf("over: %v, %v; want %v", got, err, names)
		}
	}
	want() // seen for the first time
	now = now.Add(unchanged)
	want("apiserver-old")
	now = now.Add(24 * time.Hour) // the clock jumps: apiserver-new has expired by it
	want("apiserver-old")
	for range 5 {
		now = now.Add(unchanged)
		stored, err := k.Store.Get(t.Context(), services.GetRequest{Key: keys["apiserver-new"]})
		if err != nil {
			t.Fatal(err)
		}
		renewed := services.Content{JSON: append(stored.JSON, ' '), Labels: stored.Labels}
		if _, err := k.Store.Update(t.Context(), services.UpdateRequest{Key: keys["apiserver-new"], Revision: stored.Revision, Content: renewed}); err != nil {
			t.Fatal(err)
		}
		want("apiserver-old") // the other one is still renewed, by a clock that is right
	}
	now = now.Add(unchanged)
	want("apiserver-new", "apiserver-old")
	if name := Name("host", "10.0.0.1:6443"); name == Name("host", "10.0.0.1:6444") || len(name) != len("apiserver-")+26 {
		t.Errorf("name %q", name)
	}
}

// TestLease: the Lease says what that of kube-apiserver says, and that of an earlier start is replaced.
func TestLease(t *testing.T) {
	engine := handlertest.EngineOf(t, release.V136)
	store := fake.New(t).Store()
	start := func(hidden bool) *Keeper {
		return New(Config{Vocabulary: vocabulary.K8s(), Store: store, Engine: func() *typesystem.Engine { return engine }, Host: "host", Address: "10.0.0.1:6443", Hidden: hidden,
			Writes: &writes.Handlers{Store: store, Vocabulary: vocabulary.K8s(), Codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()}), Admission: handlertest.AdmitAll{}}})
	}
	key := resource.Key{GroupResource: resource.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Namespace: "kube-system", Name: Name("host", "10.0.0.1:6443")}
	read := func() (lease struct {
		Metadata struct {
			UID                 string
			Labels, Annotations map[string]string
		}
		Spec struct{ HolderIdentity string }
	}) {
		stored, err := store.Get(t.Context(), services.GetRequest{Key: key})
		if err == nil {
			err = json.Unmarshal(stored.JSON, &lease)
		}
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	first := start(false)
	for range 2 {
		if err := first.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one := read()
	if one.Metadata.Labels["apiserver.kubernetes.io/identity"] != "kube-apiserver" || one.Metadata.Labels["kubernetes.io/hostname"] != "host" ||
		one.Metadata.Annotations["kubernetes.io/peer-advertise-address"] != "10.0.0.1:6443" || !strings.HasPrefix(one.Spec.HolderIdentity, key.Name+"_") {
		t.Errorf("%+v", one)
	}
	second := start(true)
	if err := second.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	two := read()
	if two.Metadata.UID == one.Metadata.UID || two.Spec.HolderIdentity == one.Spec.HolderIdentity || len(two.Metadata.Annotations) > 0 {
		t.Errorf("after another start: %+v", two)
	}
	if err := first.leave(t.Context(), first.isMine); err != nil || read().Metadata.UID != two.Metadata.UID {
		t.Errorf("the end of the first start: %v", err)
	}
	if err := second.leave(t.Context(), second.isMine); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), services.GetRequest{Key: key}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("after the end: %v", err)
	}
}

// TestStorageVersions: front doors have entries, one that is gone has none, and what is common follows from them.
func TestStorageVersions(t *testing.T) {
	engine := handlertest.EngineOf(t, release.V136, "internal.apiserver.k8s.io/v1alpha1=true")
	store := fake.New(t).Store()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start := func(host string) *Keeper {
		k := New(Config{Vocabulary: vocabulary.K8s(), Store: store, Engine: func() *typesystem.Engine { return engine }, Host: host, Address: "10.0.0.1:6443", Entries: true,
			Writes: &writes.Handlers{Store: store, Vocabulary: vocabulary.K8s(), Codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()}), Admission: handlertest.AdmitAll{}}})
		k.now = func() time.Time { return now }
		if err := errors.Join(k.renew(t.Context()), k.report(t.Context())); err != nil {
			t.Fatal(err)
		}
		return k
	}
	versions := resource.GroupResource{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}
	read := func(name string) (v internalv1alpha1.StorageVersion) {
		t.Helper()
		stored, err := store.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: versions, Name: name}})
		if err == nil {
			err = json.Unmarshal(stored.JSON, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ids := func(v internalv1alpha1.StorageVersion) (all []string) {
		for _, s := range v.Status.StorageVersions {
			all = append(all, s.APIServerID)
		}
		return all
	}
	one := start("one")
	two := start("two")
	deployments := read("apps.deployments")
	if own := deployments.Status.StorageVersions[0]; !slices.Equal(ids(deployments), []string{Name("one", one.Address), Name("two", two.Address)}) || own.EncodingVersion != "apps/v1" ||
		!slices.Equal(own.DecodableVersions, []string{"apps/v1"}) || !slices.Equal(own.ServedVersions, []string{"apps/v1"}) || *deployments.Status.CommonEncodingVersion != "apps/v1" {
		t.Errorf("%+v", deployments.Status)
	}
	if c := deployments.Status.Conditions[0]; c.Type != internalv1alpha1.AllEncodingVersionsEqual || c.Status != internalv1alpha1.ConditionTrue || c.Reason != "CommonEncodingVersionSet" {
		t.Errorf("%+v", c)
	}
	if pods := read("core.pods"); *pods.Status.CommonEncodingVersion != "v1" {
		t.Errorf("%+v", pods.Status)
	}
	if events := read("core.events"); !slices.Contains(events.Status.StorageVersions[0].DecodableVersions, "events.k8s.io/v1") || slices.Contains(events.Status.StorageVersions[0].ServedVersions, "events.k8s.io/v1") {
		t.Errorf("%+v", events.Status)
	}
	if _, err := store.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: versions, Name: "events.k8s.io.events"}}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("the same objects have two: %v", err)
	}
	now = now.Add(time.Minute)
	if err := one.report(t.Context()); err != nil || read("apps.deployments").ResourceVersion != deployments.ResourceVersion {
		t.Errorf("it is written again although nothing has changed: %v", err)
	}
	amend := func(name string, change func(status map[string]any)) {
		t.Helper()
		kind, _ := engine.Types.ByKind(versions.Group, "v1alpha1", "StorageVersion")
		err := one.Writes.Ensure(t.Context(), engine, map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Kind, "metadata": map[string]any{"name": name}},
			func(object map[string]any) error { change(tree.Object(object, "status")); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	other := map[string]any{"apiServerID": Name("two", two.Address), "encodingVersion": "apps/v2", "decodableVersions": []any{"apps/v2"}}
	amend("apps.deployments", func(status map[string]any) {
		status["storageVersions"] = []any{other, map[string]any{"apiServerID": "gone", "encodingVersion": "apps/v1"}}
	})
	amend("apps.former", func(map[string]any) {})
	amend("apps.former", func(status map[string]any) {
		status["storageVersions"] = []any{map[string]any{"apiServerID": "gone", "encodingVersion": "apps/v1"}}
	})
	if err := one.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	mixed := read("apps.deployments")
	if c := mixed.Status.Conditions[0]; !slices.Equal(ids(mixed), []string{Name("two", two.Address), Name("one", one.Address)}) || mixed.Status.CommonEncodingVersion != nil ||
		c.Status != internalv1alpha1.ConditionFalse || c.Reason != "CommonEncodingVersionUnset" || !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("%+v", mixed.Status)
	}
	if _, err := store.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: versions, Name: "apps.former"}}); !services.IsReason(err, services.ReasonNotFound) {
		t.Errorf("one of which all entries are gone: %v", err)
	}
	if err := errors.Join(two.leave(t.Context(), two.isMine), one.report(t.Context())); err != nil {
		t.Fatal(err)
	}
	if left := read("apps.deployments"); !slices.Equal(ids(left), []string{Name("one", one.Address)}) || *left.Status.CommonEncodingVersion != "apps/v1" {
		t.Errorf("after the end of a front door: %+v", left.Status)
	}
}
