package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestReleases checks which group versions each release serves, and that both vocabularies
// serve the same ones.
func TestReleases(t *testing.T) {
	of := func(r release.Release, v vocabulary.Vocabulary) (served []string, types int) {
		c, err := New(Options{Vocabulary: v, Release: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range c.Groups() {
			for _, version := range g.Versions {
				served = append(served, v.ShortGroup(g.Name)+"/"+version.Version)
				types += len(version.Types)
				for _, ty := range version.Types {
					if ty.Schema() == nil || ty.Stored == nil {
						t.Errorf("%s %s: no schema or storage version", ty.APIVersion(), ty.Kind)
					}
				}
			}
		}
		return served, types
	}
	for r, want := range map[release.Release]kinds.NameRule{release.V121: "label1035", release.V136: "label"} {
		c, err := New(Options{Vocabulary: vocabulary.K8s(), Release: r})
		if err != nil {
			t.Fatal(err)
		}
		if ty, ok := c.Lookup("", "v1", "services"); !ok || ty.NameRule != want {
			t.Errorf("%s: names of Services have the rule %s, want %s", r, ty.NameRule, want)
		}
	}
	for r, want := range map[release.Release]bool{release.V121: false, release.V136: true} {
		c, err := New(Options{Vocabulary: vocabulary.K8s(), Release: r})
		if err != nil {
			t.Fatal(err)
		}
		for kind, field := range map[string]string{"services": "spec.type", "pods": "spec.hostNetwork"} {
			ty, _ := c.Lookup("", "v1", kind)
			if got := slices.ContainsFunc(ty.Selectable, func(f SelectableField) bool { return f.Name == field }); got != want {
				t.Errorf("%s: %s are selected by %s: %t, want %t", r, kind, field, got, want)
			}
		}
	}
	want := []string{"/v1", "apiregistration./v1", "apps/v1", "events./v1", "authentication./v1", "authorization./v1", "autoscaling/v2", "autoscaling/v1",
		"batch/v1", "certificates./v1", "networking./v1", "policy/v1", "rbac.authorization./v1", "storage./v1", "admissionregistration./v1", "apiextensions./v1",
		"scheduling./v1", "coordination./v1", "node./v1", "discovery./v1", "resource./v1", "flowcontrol.apiserver./v1", "extension.portico.dev/v1", "access.portico.dev/v1"}
	for _, v := range []vocabulary.Vocabulary{vocabulary.K8s(), vocabulary.Platform()} {
		if served, types := of(release.V136, v); !slices.Equal(served, want) || types != 71 {
			t.Errorf("1.36 in %s serves %d types of %q", v.Name, types, served)
		}
		if stored, err := Resources(Options{Vocabulary: v, Release: release.V136}); err != nil || len(stored) == 0 {
			t.Errorf("what 1.36 stores: %v, %v", stored, err)
		}
		served, _ := of(release.V121, v)
		for _, version := range []string{"extensions/v1beta1", "policy/v1beta1", "batch/v1beta1", "autoscaling/v2beta2"} {
			if !slices.Contains(served, version) {
				t.Errorf("1.21 does not serve %s", version)
			}
		}
		if slices.Contains(served, "resource./v1") || slices.Contains(served, "autoscaling/v2") {
			t.Errorf("1.21 serves later versions: %q", served)
		}
	}
}

// TestOptionalVersions checks which beta and alpha versions of 1.36 are served on request.
func TestOptionalVersions(t *testing.T) {
	for setting, want := range map[string][]string{
		"api/beta=true": {"admissionregistration./v1beta1/mutatingadmissionpolicies", "certificates./v1beta1/clustertrustbundles", "certificates./v1beta1/podcertificaterequests",
			"coordination./v1beta1/leasecandidates", "networking./v1beta1/servicecidrs", "resource./v1beta1/resourceslices", "resource./v1beta2/devicetaintrules",
			"storage./v1beta1/volumeattributesclasses", "storagemigration./v1beta1/storageversionmigrations"},
		"api/alpha=true": {"admissionregistration./v1alpha1/mutatingadmissionpolicies", "resource./v1alpha3/devicetaintrules", "resource./v1alpha3/resourcepoolstatusrequests",
			"scheduling./v1alpha2/workloads", "scheduling./v1alpha2/podgroups"},
		"networking.k8s.io/v1beta1":             {"networking./v1beta1/ipaddresses"},
		"resource.k8s.io/v1beta1/deviceclasses": {"resource./v1beta1/deviceclasses"},
	} {
		config, err := runtimeconfig.Parse(setting)
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(Options{Vocabulary: vocabulary.K8s(), Release: release.V136, RuntimeConfig: config})
		if err != nil {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		for _, name := range want {
			part := strings.Split(name, "/")
			if ty, ok := c.Lookup(vocabulary.K8s().Group(part[0]), part[1], part[2]); !ok || ty.Schema() == nil || ty.Stored == nil {
				t.Errorf("%s: %s is not served: %+v", setting, name, ty)
			}
		}
		if _, ok := c.Lookup("networking.k8s.io", "v1beta1", "ingresses"); ok {
			t.Errorf("%s: ingresses in v1beta1 are served", setting)
		}
	}
	off := func(name string) bool { return name != "ClusterTrustBundle" }
	c, err := New(Options{Vocabulary: vocabulary.K8s(), Release: release.V136, RuntimeConfig: runtimeconfig.Config{"api/beta": true}, Feature: off})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Lookup("certificates.k8s.io", "v1beta1", "clustertrustbundles"); ok {
		t.Error("ClusterTrustBundles are served without their feature")
	}
}

// TestTypesApart: the types that may have an etcd of their own are stored types of the newest release.
func TestTypesApart(t *testing.T) {
	v := vocabulary.K8s()
	c, err := New(Options{Vocabulary: v, Release: release.V136})
	if err != nil {
		t.Fatal(err)
	}
	for _, gr := range etcd.Apart(v) {
		if stored := c.stored[gr]; stored == nil || stored.Virtual || stored.Key != gr {
			t.Errorf("%s is not stored under this name", gr)
		}
	}
}
