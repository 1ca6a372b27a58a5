package rights

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Defaults deletes all roles and bindings as the administrator. They are restored, and
// the workers go on working without a restart. No other body can run on that cluster at
// the same time.
func Defaults(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	lists := []string{"/apis/$rbac/v1/clusterrolebindings", "/apis/$rbac/v1/clusterroles", "/apis/$rbac/v1/rolebindings", "/apis/$rbac/v1/roles"}
	before := map[string]string{} // uid, by path
	for _, list := range lists {
		maps.Copy(before, s.uids(list))
	}
	if len(before) < 100 {
		t.Fatalf("the cluster starts with %d roles and bindings only", len(before))
	}
	s.await("a worker makes the default account", func() bool {
		return c.Ask(t, cluster.Request{Path: s.names.Replace("/api/v1/namespaces/$id/serviceaccounts/default")}).Code == http.StatusOK
	})
	worked := s.object("/api/v1/namespaces/$id/serviceaccounts/default")["metadata"].(map[string]any)["uid"]
	for path := range before {
		s.do(c, "DELETE "+path, "", 0)
	}
	s.do(c, "DELETE /api/v1/namespaces/$id/serviceaccounts/default", "", 0)
	started := time.Now()
	s.await("all are there again", func() bool {
		now := map[string]string{}
		for _, list := range lists {
			maps.Copy(now, s.uids(list))
		}
		for path, uid := range before {
			if now[path] == "" || now[path] == uid {
				return false
			}
		}
		return true
	})
	t.Logf("%d roles and bindings were restored %v after the last was deleted", len(before), time.Since(started).Round(time.Millisecond))
	s.await("a worker makes the default account again", func() bool {
		answer := c.Ask(t, cluster.Request{Path: s.names.Replace("/api/v1/namespaces/$id/serviceaccounts/default")})
		var account struct{ Metadata struct{ UID string } }
		return answer.Code == http.StatusOK && json.Unmarshal([]byte(answer.Body), &account) == nil && account.Metadata.UID != worked
	})
	s.do(c, "POST /api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$id-more"}}`, 0)
	s.do(c, "DELETE /api/v1/namespaces/$id-more", "", 0)
	s.await("a worker empties a namespace", func() bool {
		return c.Ask(t, cluster.Request{Path: s.names.Replace("/api/v1/namespaces/$id-more")}).Code == http.StatusNotFound
	})
	t.Logf("the workers worked again after %v", time.Since(started).Round(time.Millisecond))
	gutted(s)
}

// uids returns the uids of the default objects of a type, by their paths.
func (s *stage) uids(list string) map[string]string {
	s.Helper()
	var found struct {
		Items []struct {
			Metadata struct {
				Name, Namespace, UID string
				Labels               map[string]string
			}
		}
	}
	s.do(s.admin, "GET "+list, "", http.StatusOK).Decode(s.T, &found)
	uids := map[string]string{}
	for _, item := range found.Items {
		m, path := item.Metadata, list+"/"+item.Metadata.Name
		if m.Labels[s.admin.Vocabulary.Qualified("", "bootstrapping")] == "" {
			continue
		}
		if m.Namespace != "" {
			path = s.names.Replace("/apis/$rbac/v1/namespaces/") + m.Namespace + list[len("/apis/$rbac/v1"):] + "/" + m.Name
		}
		uids[path] = m.UID
	}
	return uids
}

// gutted takes the contents of default objects away. What users add stays, and so does
// what an operator has taken over.
func gutted(s *stage) {
	const view, edit, worker = "/apis/$rbac/v1/clusterroles/view", "/apis/$rbac/v1/clusterroles/edit", "/apis/$rbac/v1/clusterrolebindings/system:portico:lifecycle"
	s.do(s.admin, "PATCH "+edit, `{"metadata":{"annotations":{"$autoupdate":"false"}},"aggregationRule":null,"rules":[]}`, 0)
	s.do(s.admin, "PATCH "+view, `{"metadata":{"labels":{"mine":"kept"}},"aggregationRule":null}`, 0)
	s.do(s.admin, "PATCH "+worker, `{"subjects":[{"kind":"User","apiGroup":"$rbac","name":"jane"}]}`, 0)
	s.await("the role and the binding are complete", func() bool {
		subjects, _ := s.object(worker)["subjects"].([]any)
		return s.object(view)["aggregationRule"] != nil && len(subjects) == 2
	})
	if labels := s.object(view)["metadata"].(map[string]any)["labels"].(map[string]any); labels["mine"] != "kept" {
		s.Errorf("a label of a user is lost: %v", slices.Sorted(maps.Keys(labels)))
	}
	if o := s.object(edit); o["aggregationRule"] != nil {
		s.Errorf("a role was restored against its annotation: %v", o["aggregationRule"])
	}
	s.do(s.admin, "DELETE "+edit, "", 0)
	s.await("the deleted role is there again", func() bool {
		answer := s.admin.Ask(s.T, cluster.Request{Path: s.names.Replace(edit)})
		return answer.Code == http.StatusOK
	})
}

// Owners changes ownerReferences in a cluster with OwnerReferencesPermissionEnforcement.
func Owners(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	s.person("writer", rule("", "configmaps secrets", "get create update patch"))
	s.person("finalizer", rule("", "configmaps", "get create update patch delete")+","+rule("", "configmaps/finalizers", "update", "owner"))
	s.do(c, "POST /api/v1/namespaces/$id/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}}`, 0)
	s.do(c, "POST /api/v1/namespaces/$id/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"}}`, 0)
	uid, _ := s.object("/api/v1/namespaces/$id/configmaps/owner")["metadata"].(map[string]any)["uid"].(string)
	owned := func(kind, more string) string {
		return `"ownerReferences":[{"apiVersion":"v1","kind":"` + kind + `","name":"owner","uid":"` + uid + `"` + more + `}]`
	}
	object := func(name, metadata string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `",` + metadata + `}}`
	}
	const blocks, list, there = `,"blockOwnerDeletion":true`, "POST /api/v1/namespaces/$id/configmaps", "/api/v1/namespaces/$id/configmaps/there"
	// A service that has just started may not be connected to authz yet.
	s.await("admission reaches authz", func() bool {
		probe := cluster.Request{Method: http.MethodPost, Path: s.names.Replace("/api/v1/namespaces/$id/configmaps?dryRun=All"), Body: object("probe", owned("Secret", blocks))}
		return s.admin.Ask(s.T, probe).Code != http.StatusServiceUnavailable
	})
	s.try([]attempt{
		{"a new object", "writer", list, object("a", owned("ConfigMap", "")), 0},
		{"a new object that blocks", "writer", list, object("b", owned("ConfigMap", blocks)), 403},
		{"a new object that blocks what may be finalized", "finalizer", list, object("b", owned("ConfigMap", blocks)), 0},
		{"a new object that blocks another kind", "finalizer", list, object("c", owned("Secret", blocks)), 403},
		{"a new object that blocks an unknown kind", "finalizer", list, object("c", owned("Thing", blocks)), 403},
		{"an owner of what may not be deleted", "writer", "PATCH " + there, object("there", owned("ConfigMap", "")), 403},
		{"an owner by apply", "writer", "PATCH+apply " + there + "?fieldManager=x", object("there", owned("ConfigMap", "")), 403},
		{"an owner of what may be deleted", "finalizer", "PATCH " + there, object("there", owned("ConfigMap", "")), 0},
		{"the same owner", "writer", "PATCH " + there, `{"data":{"a":"b"}}`, 0},
		{"a blocked owner later", "finalizer", "PATCH " + there, object("there", owned("ConfigMap", blocks)), 0},
		{"no owner any more", "writer", "PATCH " + there, `{"metadata":{"ownerReferences":null}}`, 403},
	})
}
