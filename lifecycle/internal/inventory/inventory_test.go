package inventory_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestRead(t *testing.T) {
	names := vocabulary.Platform()
	served := func(group, version, resource, kind string) apitest.Type {
		return apitest.Type{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, Kind: kind, Namespaced: true}
	}
	uncertain := served("example.com", "v1", "widgets", "Widget")
	uncertain.Stale = true
	a := apitest.Start(t, served("", "v1", "events", "Event"), served(names.Group("events."), "v1", "events", "Event"),
		served("extensions", "v1beta1", "ingresses", "Ingress"), served("bad.example.com", "v1/v2", "x", "X"), uncertain,
		served("evil.example.com", "v1", "..", "Up"), served("evil.example.com", "v1", "a/b", "Deeper"), served("evil.example.com", "v1", "a%2Fb", "Escaped"),
		served("evil.example.com", "v1", "a#b", "Cut"), served("evil.example.com", "v1", "", "Nothing"))
	source, err := inventory.NewSource(a.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	read, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, known := range read.Types {
		got = append(got, known.GroupResource().String())
	}
	if want := []string{"events", "widgets.example.com"}; !slices.Equal(got, want) {
		t.Errorf("types %q, want %q", got, want)
	}
	if !slices.Equal(read.Stale, []schema.GroupVersion{uncertain.GroupVersion()}) || len(read.Malformed) != 1 {
		t.Errorf("stale %v, malformed %q", read.Stale, read.Malformed)
	}
	ingress := read.Kind(schema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Ingress"})
	if ingress == nil || ingress.Resource != "ingresses" || !ingress.Namespaced || !ingress.Can("get", "delete") || ingress.Can("approve") {
		t.Errorf("the ingress of an alias: %v", ingress)
	}
}
