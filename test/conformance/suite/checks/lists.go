package checks

import . "github.com/portico-platform/portico/test/conformance/suite/harness"

func lists() {
	s := Section("List envelope")

	s.Check("LIST-01", "kind: the list kind; apiVersion: group version", func(t *T) {
		o := t.GET(t.In("pods")).OK().Obj()
		t.Eq("kind", o.Str("kind"), "PodList")
		t.Eq("apiVersion", o.Str("apiVersion"), "v1")
		o = t.GET(t.In("apps/v1/deployments")).OK().Obj()
		t.Eq("kind", o.Str("kind"), "DeploymentList")
		t.Eq("apiVersion", o.Str("apiVersion"), "apps/v1")
	})
	s.Check("LIST-02", "metadata.resourceVersion: the version at which the list was constructed", func(t *T) {
		first := t.GET(t.In("configmaps")).OK().Obj()
		t.True(first.RV() != "", "a list resourceVersion")
		made := t.CM("a")
		second := t.GET(t.In("configmaps")).OK().Obj()
		t.Ne("list resourceVersion after a change", second.RV(), first.RV())
		w := t.Watch(t.In("configmaps") + "?resourceVersion=" + Esc(first.RV()))
		t.Eq("version of the change seen from the first list on", w.Expect("ADDED", "a").RV(), made.RV())
	})
	s.Check("LIST-03", "items: an array, empty when there is nothing", func(t *T) {
		o := t.GET(t.In("podtemplates")).OK().Obj()
		items, ok := o.At("items").([]any)
		t.True(ok && len(items) == 0, "items to be an empty array, got %v", o.At("items"))
	})
	s.Check("LIST-04", "metadata.continue: empty string when the end has been reached", func(t *T) {
		t.CMs("c", 3)
		t.Eq("continue without limit", t.GET(t.In("configmaps")).OK().Obj().Str("metadata.continue"), "")
		t.Eq("continue with a large limit", t.GET(t.In("configmaps")+"?limit=500").OK().Obj().Str("metadata.continue"), "")
		t.True(t.GET(t.In("configmaps")+"?limit=1").OK().Obj().Str("metadata.continue") != "", "a continue token when more remain")
	})
	s.Check("LIST-05", "metadata.continue: present on all list responses", func(t *T) {
		o := t.GET(t.In("configmaps")).OK().Obj()
		t.True(o.Has("metadata.continue"), "the field metadata.continue in %v", o["metadata"])
	}, PlatformOnly("Kubernetes leaves the empty string out, in every release"))
	s.Check("LIST-06", "items: each has kind and apiVersion, unless the original's clients fill them in", func(t *T) {
		for _, c := range []struct{ path, apiVersion, kind string }{
			{t.In("configmaps"), "v1", "ConfigMap"}, {t.In("endpoints"), "v1", "Endpoints"}, {t.In("apps/v1/deployments"), "apps/v1", "Deployment"},
		} {
			t.POST(c.path, map[string]Obj{
				"ConfigMap": ConfigMap("a", "k", "v"), "Deployment": Deployment("a", 0),
				"Endpoints": {"apiVersion": "v1", "kind": "Endpoints", "metadata": Obj{"name": "a"}},
			}[c.kind]).OK()
			for _, accept := range []string{"application/json", "application/yaml"} {
				r := t.GET(c.path, Accept(accept)).Is(200)
				item := YAML("%s", string(r.Raw)).Item("a")
				t.Eq("name", item.Name(), "a")
				if Vocabulary() == Platform {
					t.Eq("kind", item.Str("kind"), c.kind)
					t.Eq("apiVersion", item.Str("apiVersion"), c.apiVersion)
				} else {
					t.True(!item.Has("kind") && !item.Has("apiVersion"), "no kind and apiVersion in %v", item)
				}
			}
		}
		crd := t.CRD(AnySchema)
		t.POST(t.In(crd.Resource()), crd.Object("a", "spec: {}")).OK()
		t.Eq("kind of a custom item", t.GET(t.In(crd.Resource())).OK().Obj().Item("a").Str("kind"), crd.Kind)
	})
}
