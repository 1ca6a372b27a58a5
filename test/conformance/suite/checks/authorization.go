package checks

import (
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func authorization() {
	s := Section("Authorization")

	alice := Token("alice-token")
	s.Check("AUTHZ-01", "an authenticated user lacks permission: 403 Forbidden", func(t *T) {
		t.GET(t.In("configmaps")+"/a", As(alice)).Status(403, "Forbidden")
	})
	s.Check("AUTHZ-02", "a role rule: apiGroups, resources, verbs", func(t *T) {
		u := t.User()
		t.GrantIn(t.NS(), u.Name, `[{apiGroups: [""], resources: [configmaps], verbs: [get]}]`)
		t.CM("a")
		t.Allowed(func() *Resp { return t.GET(t.In("configmaps")+"/a", As(u)) }).Is(200)
		t.GET(t.In("configmaps"), As(u)).Is(403)
		t.DELETE(t.In("configmaps")+"/a", nil, As(u)).Is(403)
		t.POST(t.In("configmaps"), ConfigMap("b"), As(u)).Is(403)
		t.PATCH(MergePatch, t.In("configmaps")+"/a", `{data: {k: v}}`, As(u)).Is(403)
		t.GET(t.In("secrets"), As(u)).Is(403)
	})
	s.Check("AUTHZ-03", "a role rule for one group does not cover another", func(t *T) {
		u := t.User()
		t.GrantIn(t.NS(), u.Name, `[{apiGroups: [apps], resources: ["*"], verbs: ["*"]}]`)
		t.Allowed(func() *Resp { return t.GET(t.In("apps/v1/deployments"), As(u)) }).Is(200)
		t.GET(t.In("batch/v1/jobs"), As(u)).Is(403)
		t.GET(t.In("pods"), As(u)).Is(403)
	})
	s.Check("AUTHZ-04", "a group of a user gives permission", func(t *T) {
		t.GrantGroup("team-a", `[{apiGroups: [""], resources: [limitranges], verbs: [list]}]`)
		t.Allowed(func() *Resp { return t.GET("/api/v1/limitranges", As(alice)) }).Is(200)
		t.GET("/api/v1/limitranges", As(Token("bob-token"))).Is(403)
	})
	s.Check("AUTHZ-05", "permission check: SubjectAccessReview for a user", func(t *T) {
		u := t.Name("sam")
		t.GrantIn(t.NS(), u, ReadConfigMaps)
		ask := func(verb, ns string) bool {
			return t.AccessReview(`{user: "` + u + `", resourceAttributes: {verb: ` + verb + `, resource: configmaps, namespace: "` + ns + `"}}`).Bool("allowed")
		}
		t.Until(5*time.Second, "get allowed", func() bool { return ask("get", t.NS()) })
		t.Eq("delete allowed", ask("delete", t.NS()), false)
		t.Eq("get allowed elsewhere", ask("get", "default"), false)
	})
	s.Check("AUTHZ-06", "permission check of oneself: SelfSubjectAccessReview", func(t *T) {
		ask := func(id Identity) bool {
			return t.POST(All("authorization.platform.io/v1/selfsubjectaccessreviews"), `
apiVersion: authorization.platform.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: delete, resource: nodes}}`, As(id)).OK().Obj().Bool("status.allowed")
		}
		t.Eq("admin", ask(t.Admin()), true)
		t.Eq("alice", ask(alice), false)
	})
	s.Check("AUTHZ-07", "a user cannot grant more than it has (as in Kubernetes)", func(t *T) {
		u := t.User()
		t.GrantIn(t.NS(), u.Name, `[{apiGroups: [rbac.authorization.platform.io], resources: [roles, rolebindings], verbs: [get, list, create, update]}, {apiGroups: [""], resources: [configmaps], verbs: [get]}]`)
		roles := t.In("rbac.authorization.platform.io/v1/roles")
		t.Allowed(func() *Resp { return t.GET(roles, As(u)) }).Is(200)
		role := func(name, verb string) string {
			return `{apiVersion: rbac.authorization.platform.io/v1, kind: Role, metadata: {name: ` + name + `}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [` + verb + `]}]}`
		}
		t.Allowed(func() *Resp { return t.POST(roles, role("same", "get"), As(u)) }).OK()
		t.POST(roles, role("more", "delete"), As(u)).Is(403)
	})
	s.Check("AUTHZ-08", "aggregated cluster roles show the rules of the roles that they select (as in Kubernetes)", func(t *T) {
		roles := All("rbac.authorization.platform.io/v1/clusterroles")
		t.Until(10*time.Second, "the role view shows rules", func() bool { return len(t.GET(roles+"/view").OK().Obj().List("rules")) > 0 })
		name := t.Name("aggregated")
		t.Cleanup(func() { t.DELETE(roles+"/"+name, nil); t.DELETE(roles+"/"+name+"-part", nil) })
		t.POST(roles, YAML(`
apiVersion: rbac.authorization.platform.io/v1
kind: ClusterRole
metadata: {name: %s}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: %s}}]}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]`, name, name)).OK()
		t.POST(roles, YAML(`
apiVersion: rbac.authorization.platform.io/v1
kind: ClusterRole
metadata: {name: %s-part, labels: {to: %s}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`, name, name)).OK()
		t.Until(10*time.Second, "the role shows the rules of its part, and no others", func() bool {
			rules := t.GET(roles + "/" + name).OK().Obj().List("rules")
			return len(rules) == 1 && rules[0].Strs("resources")[0] == "pods"
		})
		t.PATCH(MergePatch, roles+"/"+name+"-part", `{metadata: {labels: {to: null}}}`).OK()
		t.Until(10*time.Second, "the role shows no rules", func() bool { return len(t.GET(roles+"/"+name).OK().Obj().List("rules")) == 0 })
	})
}
