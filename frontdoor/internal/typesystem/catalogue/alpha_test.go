package catalogue

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// alphas returns the served alpha types, without the suffixes of groups.
func alphas(v vocabulary.Vocabulary, c *Catalogue) (found []string) {
	for _, group := range c.Groups() {
		for _, version := range group.Versions {
			for _, t := range version.Types {
				if strings.Contains(t.Version, "alpha") {
					found = append(found, v.ShortGroup(t.Group)+"/"+t.Version+"/"+t.Resource)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestAlphaVersions: they are served on request only, all of them or single ones.
func TestAlphaVersions(t *testing.T) {
	all := []string{
		"internal.apiserver./v1alpha1/storageversions", "node./v1alpha1/runtimeclasses",
		"rbac.authorization./v1alpha1/clusterrolebindings", "rbac.authorization./v1alpha1/clusterroles",
		"rbac.authorization./v1alpha1/rolebindings", "rbac.authorization./v1alpha1/roles", "scheduling./v1alpha1/priorityclasses",
		"storage./v1alpha1/csistoragecapacities", "storage./v1alpha1/volumeattachments",
	}
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		for setting, want := range map[string][]string{
			"": nil, "api/all=true": all, "api/alpha=true": all, "api/beta=true": nil, "api/all=true,api/alpha=false": nil,
			v.Group("node.") + "/v1alpha1":                                    all[1:2],
			"api/alpha," + v.Group("rbac.authorization.") + "/v1alpha1=false": slices.Concat(all[:2], all[6:]),
			v.Group("storage.") + "/v1alpha1/volumeattachments":               all[8:],
		} {
			if got := alphas(v, build(t, v, setting)); !slices.Equal(got, want) {
				t.Errorf("%s: %q serves %q, want %q", v.Name, setting, got, want)
			}
		}
	}
}

// TestAlphaDefinitions: the definitions of alpha versions refer to existing ones and to none
// of the version that they are copied from, and their objects are stored in another version.
func TestAlphaDefinitions(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		c := build(t, v, "api/alpha=true")
		checked := 0
		for name, schema := range c.Definitions().All() {
			if !strings.Contains(name, "v1alpha1") {
				continue
			}
			checked++
			for _, at := range references(schema) {
				if c.Definitions().Get(at) == nil || strings.Contains(at, "v1beta1") {
					t.Errorf("%s: %s refers to %s", v.Name, name, at)
				}
			}
			for _, id := range kindsOf(schema) {
				if id.Version != "v1alpha1" {
					t.Errorf("%s: %s is a definition of %v", v.Name, name, id)
				}
			}
		}
		if checked < 25 {
			t.Errorf("%s: only %d definitions", v.Name, checked)
		}
		for _, of := range alphas(v, c) {
			part := strings.Split(of, "/")
			alpha, _ := c.Lookup(v.Group(part[0]), part[1], part[2])
			if stable := alpha.Stored.Version != "v1alpha1"; stable == (part[2] == "storageversions") || alpha.Schema() == nil {
				t.Errorf("%s: %s is stored as %s, and its schema is %v", v.Name, of, alpha.Stored.Version, alpha.Schema())
			}
		}
	}
}

func references(s *spec.Schema) (found []string) {
	if at := strings.TrimPrefix(s.Ref.String(), definitionsPointer); at != "" {
		found = append(found, at)
	}
	for _, property := range s.Properties {
		found = append(found, references(&property)...)
	}
	for _, part := range s.AllOf {
		found = append(found, references(&part)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		found = append(found, references(s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		found = append(found, references(s.AdditionalProperties.Schema)...)
	}
	return found
}

// TestAlphaVersionsOfLaterReleases: later releases have others.
func TestAlphaVersionsOfLaterReleases(t *testing.T) {
	v := vocabulary.K8s()
	c, err := New(Options{Vocabulary: v, Release: release.V136, RuntimeConfig: runtimeconfig.Config{"api/alpha": true}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"admissionregistration./v1alpha1/mutatingadmissionpolicies", "admissionregistration./v1alpha1/mutatingadmissionpolicybindings",
		"certificates./v1alpha1/clustertrustbundles", "coordination./v1alpha2/leasecandidates", "internal.apiserver./v1alpha1/storageversions", "resource./v1alpha3/devicetaintrules",
		"resource./v1alpha3/resourcepoolstatusrequests", "scheduling./v1alpha2/podgroups", "scheduling./v1alpha2/workloads"}
	if got := alphas(v, c); !slices.Equal(got, want) {
		t.Errorf("1.36 serves %q", got)
	}
}

// kindsOf returns the kinds in a definition's group-version-kind extension.
func kindsOf(s *spec.Schema) []kindID {
	list, _ := s.Extensions[extensionKinds].([]any)
	kinds := make([]kindID, 0, len(list))
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok {
			group, _ := m["group"].(string)
			version, _ := m["version"].(string)
			kind, _ := m["kind"].(string)
			kinds = append(kinds, kindID{group, version, kind})
		}
	}
	return kinds
}
