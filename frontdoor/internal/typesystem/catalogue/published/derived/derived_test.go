package derived

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestAdd(t *testing.T) {
	definitions := map[string]*spec.Schema{}
	refers := func(to ...string) *spec.Schema {
		s := &spec.Schema{}
		for _, name := range to {
			s.SetProperty(name, *spec.RefSchema("#/definitions/" + name))
		}
		return s
	}
	definitions["a.v1beta1.List"] = refers("a.v1beta1.Thing", "meta.v1.Meta")
	definitions["a.v1beta1.Thing"] = refers("a.v1beta1.Part")
	definitions["a.v1beta1.Part"] = refers()
	definitions["a.v1beta1.Other"] = refers()
	definitions["a.v1alpha1.Thing"] = refers("a.v1alpha1.Part", "b.v1.Else") // differs
	if err := (Version{"v1alpha1", "v1beta1"}).Add(definitions, "a.v1alpha1.List"); err != nil {
		t.Fatal(err)
	}
	to := func(s *spec.Schema, name string) string {
		property := s.Properties[name]
		return property.Ref.String()
	}
	list, thing := definitions["a.v1alpha1.List"], definitions["a.v1alpha1.Thing"]
	if list == nil || to(list, "a.v1alpha1.Thing") != "#/definitions/a.v1alpha1.Thing" || to(list, "meta.v1.Meta") != "#/definitions/meta.v1.Meta" {
		t.Errorf("the list: %+v", list)
	}
	if _, kept := thing.Properties["b.v1.Else"]; !kept || definitions["a.v1alpha1.Part"] == nil || definitions["a.v1alpha1.Other"] != nil || len(definitions) != 7 {
		t.Errorf("%+v of %d definitions", thing, len(definitions))
	}
	if before := definitions["a.v1beta1.List"]; to(before, "a.v1beta1.Thing") == "" {
		t.Errorf("the other version has changed: %+v", before)
	}
	if err := (Version{"v1alpha1", "v1beta1"}).Add(definitions, "a.v1alpha1.None"); err == nil {
		t.Error("a definition is made from nothing")
	}
}
