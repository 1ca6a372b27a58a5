package writes

import (
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// TestUnreadableObjectsAreRepaired: who may can delete or replace an object that cannot be read, and no other user; it is not
// taken for absent, and its dependents keep their owner.
func TestUnreadableObjectsAreRepaired(t *testing.T) {
	cluster := fake.New(t)
	c := newClient(t, cluster.Store(), "10.0.0.0/24")
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "ns", Name: "a"}
	const collection = "/api/v1/namespaces/ns/configmaps"
	const path = collection + "/a"
	whole := func(more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"` + more + `},"data":{"a":"b"}}`
	}
	var needed services.Attributes
	allowed := false
	c.handlers.Allow = func(_ *request.Request, a services.Attributes) error {
		needed = a
		if !allowed {
			return services.Forbidden("", "configmaps", "a", "not allowed")
		}
		return nil
	}
	refused := func(what, reason, method, path, body string) {
		t.Helper()
		if _, err := c.do(method, path, body); !services.IsReason(err, reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	revision := cluster.Damage(key)
	refused("delete without the right", services.ReasonForbidden, "DELETE", path, "")
	if needed.Verb != services.VerbUnsafeDelete || needed.Name != "a" || needed.Namespace != "ns" || needed.Resource != "configmaps" {
		t.Errorf("needed for %+v", needed)
	}
	refused("update without the right", services.ReasonForbidden, "PUT", path, whole(""))
	allowed = true
	refused("create", services.ReasonAlreadyExists, "POST", collection, whole(""))
	refused("patch", services.ReasonUnreadable, "PATCH", path, `{"data":{"c":"d"}}`)
	refused("delete of the collection", services.ReasonUnreadable, "DELETE", collection, "")
	refused("delete with a UID", services.ReasonUnreadable, "DELETE", path, `{"preconditions":{"uid":"x"}}`)
	refused("delete of another revision", services.ReasonConflict, "DELETE", path, `{"preconditions":{"resourceVersion":"1"}}`)
	refused("update of another revision", services.ReasonConflict, "PUT", path, whole(`,"resourceVersion":"1"`))
	if _, err := c.do("DELETE", path+"?dryRun=All", ""); err != nil {
		t.Error(err)
	}
	if _, err := c.do("PUT", path+"?dryRun=All", whole("")); err != nil {
		t.Error(err)
	}
	refused("get", services.ReasonUnreadable, "PATCH", path, `{}`)
	got, err := c.do("PUT", path, whole(`,"uid":"kept","resourceVersion":"`+resource.FormatResourceVersion(revision)+`"`))
	if err != nil || tree.Text(got, "metadata", "uid") != "kept" || tree.Text(got, "data", "a") != "b" || c.code.Load() != 200 {
		t.Errorf("replaced: %d %v, %v", c.code.Load(), got, err)
	}
	cluster.Damage(key)
	if _, err := c.do("DELETE", path, ""); err != nil {
		t.Error(err)
	}
	refused("deleted", services.ReasonNotFound, "DELETE", path, "")
}
