package checks

import (
	"strings"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func discovery() {
	s := Section("Groups and paths")

	s.Check("DISC-01", "core group: /api lists version v1", func(t *T) {
		o := t.GET("/api").Is(200).Obj()
		t.Eq("kind", o.Str("kind"), "APIVersions")
		t.Eq("versions", o.At("versions"), []string{"v1"})
	})
	s.Check("DISC-02", "/api/v1 lists the resource types of the core group", func(t *T) {
		o := t.GET("/api/v1").Is(200).Obj()
		t.Eq("kind", o.Str("kind"), "APIResourceList")
		t.Eq("groupVersion", o.Str("groupVersion"), "v1")
		found := map[string]Obj{}
		for _, r := range o.List("resources") {
			found[r.Str("name")] = r
		}
		for name, namespaced := range map[string]bool{"pods": true, "services": true, "configmaps": true, "namespaces": false, "nodes": false} {
			t.True(found[name] != nil, "resource type %s", name)
			t.Eq(name+" is namespaced", found[name].Bool("namespaced"), namespaced)
			t.Includes("verbs of "+name, found[name].Strs("verbs"), "create", "delete", "get", "list", "patch", "update", "watch")
		}
		t.Eq("kind of pods", found["pods"].Str("kind"), "Pod")
		for _, sub := range []string{"pods/status", "pods/binding", "namespaces/status", "namespaces/finalize"} {
			t.True(found[sub] != nil, "subresource %s", sub)
		}
	})
	s.Check("DISC-03", "/apis lists the named groups with their versions", func(t *T) {
		o := t.GET("/apis").Is(200).Obj()
		t.Eq("kind", o.Str("kind"), "APIGroupList")
		served := map[string]bool{}
		for _, g := range o.List("groups") {
			for _, v := range g.List("versions") {
				served[v.Str("groupVersion")] = true
				t.Eq("groupVersion", v.Str("groupVersion"), g.Str("name")+"/"+v.Str("version"))
			}
			t.True(g.Str("preferredVersion.groupVersion") != "", "a preferred version of %s", g.Str("name"))
		}
		for _, gv := range []string{"apps/v1", "batch/v1", "policy/v1", "autoscaling/v1", "certificates.platform.io/v1",
			"authentication.platform.io/v1", "authorization.platform.io/v1", "rbac.authorization.platform.io/v1",
			"apiextensions.platform.io/v1", "admissionregistration.platform.io/v1", "coordination.platform.io/v1",
			"events.platform.io/v1", "networking.platform.io/v1", "storage.platform.io/v1", "node.platform.io/v1",
			"scheduling.platform.io/v1", "discovery.platform.io/v1", "apiregistration.platform.io/v1"} {
			t.True(served[N(gv)], "group version %s to be served", N(gv))
		}
	})
	s.Check("DISC-04", "the release of the service: /version (as in Kubernetes)", func(t *T) {
		o := t.GET("/version").Is(200).Obj()
		t.Eq("major", o.Str("major"), "1")
		t.True(strings.HasPrefix(o.Str("gitVersion"), "v1."), "a gitVersion like v1.x.y, got %q", o.Str("gitVersion"))
		t.True(o.Str("minor") != "", "a minor version")
	})
	const schema = `schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}`
	s.Check("DISC-05", "JSON and Protobuf follow the same schema: /openapi/v2", func(t *T) {
		o := t.GET("/openapi/v2").Is(200).Obj()
		t.True(o.Has("paths"), "paths in the OpenAPI document")
		paths := o.Map("paths")
		for _, p := range []string{"/api/v1/namespaces/{namespace}/configmaps", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"} {
			_, ok := paths[p]
			t.True(ok, "path %s in the OpenAPI document", p)
		}
	})
}
