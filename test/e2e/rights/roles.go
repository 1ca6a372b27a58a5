package rights

import (
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	clusterRoles    = " /apis/$rbac/v1/clusterroles"
	clusterBindings = " /apis/$rbac/v1/clusterrolebindings"
	strongRole      = clusterRoles + "/$id-strong"
	mildRole        = clusterRoles + "/$id-mild"
	// toView makes a role a part of the role view.
	toView = `"labels":{"$rbac/aggregate-to-view":"true"}`
)

// Roles tests that a user who may write roles and bindings, and has the role view, cannot
// get further permissions.
func Roles(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	const writing = "create update patch delete get list"
	writer := rule("$rbac", "clusterroles clusterrolebindings roles rolebindings", writing)
	s.person("writer", writer, "view")
	s.person("escalator", writer+","+rule("$rbac", "clusterroles", "escalate", "$id-strong"))
	s.person("binder", writer+","+rule("$rbac", "clusterroles", "bind", "$id-strong"))
	secrets, configMaps := rule("", "secrets", "get list"), rule("", "configmaps", "get")
	s.role("$id-strong", secrets)
	s.role("$id-mild", configMaps)
	s.bind("$id-strong", "$id-strong", "default")
	s.bind("$id-mild", "$id-mild", "default")
	s.Cleanup(func() { // what the successful attempts made
		for _, name := range []string{"$id-made", "$id-put", "$id-applied"} {
			s.remove("/apis/$rbac/v1/clusterroles/" + name)
			s.remove("/apis/$rbac/v1/clusterrolebindings/" + name)
		}
	})
	s.try(aggregation(secrets, configMaps))
	s.try(creation(secrets, configMaps))
	s.try(bindings())
	s.do(s.people["writer"], "GET /api/v1/namespaces/$id/secrets", "", 403)
	s.do(s.people["writer"], "GET /api/v1/namespaces/$id/configmaps", "", 0)
}

// aggregation are changes of what existing roles gather, or are gathered by.
func aggregation(secrets, configMaps string) []attempt {
	label := `{"metadata":{` + toView + `}}`
	everything := `{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`
	return []attempt{
		{"label by merge patch", "writer", "PATCH" + strongRole, label, 403},
		{"label by merge patch of cluster-admin", "writer", "PATCH" + clusterRoles + "/cluster-admin", label, 403},
		{"label by strategic patch", "writer", "PATCH+strategic" + strongRole, label, 403},
		{"label by JSON patch", "writer", "PATCH+json" + strongRole,
			`[{"op":"add","path":"/metadata/labels","value":{"$rbac/aggregate-to-view":"true"}}]`, 403},
		{"label by apply", "writer", "PATCH+apply" + strongRole + "?fieldManager=x", clusterRole("$id-strong", ","+toView, secrets), 403},
		{"label by forced apply of nothing else", "writer", "PATCH+apply" + strongRole + "?fieldManager=y&force=true",
			`{"apiVersion":"$rbac/v1","kind":"ClusterRole","metadata":{"name":"$id-strong",` + toView + `}}`, 403},
		{"label by update", "writer", "PUT" + strongRole, clusterRole("$id-strong", ","+toView, secrets), 403},
		{"label in a dry run", "writer", "PATCH" + strongRole + "?dryRun=All", label, 403},
		{"label in v1beta1", "writer", "PATCH /apis/$rbac/v1beta1/clusterroles/$id-strong", label, 403},
		{"annotation, which is not the garbage collector's", "writer", "PATCH" + strongRole, `{"metadata":{"annotations":{"a":"b"}}}`, 403},
		{"removed rules and a label", "writer", "PUT" + strongRole, clusterRole("$id-strong", ","+toView, configMaps), 0},
		{"added rules", "writer", "PUT" + strongRole, clusterRole("$id-strong", "", secrets), 403},
		{"finalizer", "writer", "PATCH" + clusterRoles + "/admin", `{"metadata":{"finalizers":["example.com/x"]}}`, 0},
		{"no finalizer", "writer", "PATCH" + clusterRoles + "/admin", `{"metadata":{"finalizers":null}}`, 0},
		{"a finalizer together with a label", "writer", "PATCH" + clusterRoles + "/admin",
			`{"metadata":{"finalizers":["example.com/x"],` + toView + `}}`, 403},
		{"rules with escalate on the role", "escalator", "PUT" + strongRole, clusterRole("$id-strong", "", secrets), 0},
		{"label with escalate on another role", "escalator", "PATCH" + clusterRoles + "/cluster-admin", label, 403},
		{"label of what is held", "writer", "PATCH" + mildRole, label, 0},
		{"aggregation of anything", "writer", "PATCH" + mildRole, `{"aggregationRule":` + everything + `}`, 403},
		{"aggregation of anything in v1beta1", "writer", "PATCH /apis/$rbac/v1beta1/clusterroles/$id-mild", `{"aggregationRule":` + everything + `}`, 403},
		{"another aggregation", "writer", "PATCH" + clusterRoles + "/view", `{"aggregationRule":` + everything + `}`, 403},
		{"no aggregation", "writer", "PATCH" + clusterRoles + "/view", `{"aggregationRule":null}`, 403},
		{"a stronger role as a part of a weaker one", "writer", "PATCH" + clusterRoles + "/admin", label, 403},
	}
}

// creation are new roles.
func creation(secrets, configMaps string) []attempt {
	made := clusterRole("$id-made", ","+toView, secrets)
	return []attempt{
		{"new role", "writer", "POST" + clusterRoles, made, 403},
		{"new role in a dry run", "writer", "POST" + clusterRoles + "?dryRun=All", made, 403},
		{"new role by apply", "writer", "PATCH+apply" + clusterRoles + "/$id-made?fieldManager=x", made, 403},
		{"new role by update", "writer", "PUT" + clusterRoles + "/$id-made", made, 403},
		{"new role by an update in v1beta1", "writer", "PUT /apis/$rbac/v1beta1/clusterroles/$id-made",
			`{"apiVersion":"$rbac/v1beta1","kind":"ClusterRole","metadata":{"name":"$id-made"},"rules":[` + secrets + `]}`, 403},
		{"new role of a namespace", "writer", "POST /apis/$rbac/v1/namespaces/$id/roles",
			`{"apiVersion":"$rbac/v1","kind":"Role","metadata":{"name":"made"},"rules":[` + secrets + `]}`, 403},
		{"new role of what is held", "writer", "POST" + clusterRoles, clusterRole("$id-made", ","+toView, configMaps), 0},
		{"new role by update of what is held", "writer", "PUT" + clusterRoles + "/$id-put", clusterRole("$id-put", "", configMaps), 0},
		{"new role by apply of what is held", "writer", "PATCH+apply" + clusterRoles + "/$id-applied?fieldManager=x", clusterRole("$id-applied", "", configMaps), 0},
		{"new role that aggregates", "writer", "POST" + clusterRoles,
			`{"apiVersion":"$rbac/v1","kind":"ClusterRole","metadata":{"generateName":"$id-"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`, 403},
	}
}

// bindings are changes of who holds a role, and roles that are replaced below them.
func bindings() []attempt {
	to := func(name, role string) string { return binding("ClusterRoleBinding", name, role, "writer") }
	return []attempt{
		{"binding", "writer", "POST" + clusterBindings, to("$id-made", "$id-strong"), 403},
		{"binding to cluster-admin", "writer", "POST" + clusterBindings, to("$id-made", "cluster-admin"), 403},
		{"binding to a role that does not exist yet", "writer", "POST" + clusterBindings, to("$id-made", "$id-none"), 404},
		{"binding by update", "writer", "PUT" + clusterBindings + "/$id-made", to("$id-made", "$id-strong"), 403},
		{"binding by apply", "writer", "PATCH+apply" + clusterBindings + "/$id-made?fieldManager=x", to("$id-made", "$id-strong"), 403},
		{"binding in a namespace", "writer", "POST /apis/$rbac/v1/namespaces/$id/rolebindings", binding("RoleBinding", "made", "$id-strong", "writer"), 403},
		{"another subject", "writer", "PUT" + clusterBindings + "/$id-strong", to("$id-strong", "$id-strong"), 403},
		{"another subject in v1beta1", "writer", "PATCH /apis/$rbac/v1beta1/clusterrolebindings/$id-strong",
			`{"subjects":[{"kind":"ServiceAccount","namespace":"$id","name":"writer"}]}`, 403},
		{"another role", "writer", "PUT" + clusterBindings + "/$id-mild", to("$id-mild", "$id-strong"), 422},
		{"another role that is held", "writer", "PUT" + clusterBindings + "/$id-mild", to("$id-mild", "view"), 422},
		{"binding to what is held", "writer", "POST" + clusterBindings, to("$id-made", "$id-mild"), 0},
		{"finalizer of a binding", "writer", "PATCH" + clusterBindings + "/$id-strong", `{"metadata":{"finalizers":["example.com/x"]}}`, 0},
		{"no finalizer of a binding", "writer", "PATCH" + clusterBindings + "/$id-strong", `{"metadata":{"finalizers":null}}`, 0},
		{"binding with bind on the role", "binder", "POST" + clusterBindings, binding("ClusterRoleBinding", "$id-put", "$id-strong", "default"), 0},
		{"binding with bind on another role", "binder", "POST" + clusterBindings, binding("ClusterRoleBinding", "$id-applied", "cluster-admin", "default"), 403},
		{"a role whose binding stays", "writer", "DELETE" + strongRole, "", 0},
		{"a subject of a role that is gone", "writer", "PUT" + clusterBindings + "/$id-strong", to("$id-strong", "$id-strong"), 404},
		{"the role again", "writer", "POST" + clusterRoles, clusterRole("$id-strong", "", rule("", "secrets", "get list")), 403},
	}
}
