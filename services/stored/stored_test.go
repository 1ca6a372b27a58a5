package stored_test

import (
	"testing"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/stored"
	"github.com/portico-platform/portico/services/tree"
)

func TestCheck(t *testing.T) {
	role := resource.Key{GroupResource: resource.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, Namespace: "ns", Name: "a"}
	custom := resource.Key{GroupResource: resource.GroupResource{Group: "test.example", Resource: "things", Custom: true}, Name: "a"}
	record := resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "records"}, Name: "a"}
	policies := resource.Key{GroupResource: resource.GroupResource{Group: "networking.platform.io", Resource: "networkpolicies"}, Name: "a"}
	for _, c := range []struct {
		key    resource.Key
		object string
		ok     bool
	}{
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","namespace":"ns"}}`, true},
		{role, `{"metadata":{"uid":"x"}}`, true},
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"b","namespace":"ns"}}`, false},
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","namespace":"other"}}`, false},
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"a","namespace":"ns"}}`, false},
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v9","kind":"Role","metadata":{"name":"a","namespace":"ns"}}`, false},
		{role, `{"apiVersion":"v2","kind":"Role","metadata":{"name":"a","namespace":"ns"}}`, false},
		{role, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","namespace":"ns"`, false},
		{role, `garbage`, false},
		{policies, `{"apiVersion":"networking.platform.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"}}`, true},
		{custom, `{"apiVersion":"test.example/v7","kind":"Whatever","metadata":{"name":"a"}}`, true},
		{custom, `{"apiVersion":"other.example/v1","kind":"Whatever","metadata":{"name":"a"}}`, false},
		{record, `{"kind":"x","apiVersion":"y/v9","metadata":{"name":"a"}}`, true},
	} {
		at, _ := tree.MetadataOffset([]byte(c.object))
		if stored.Check(c.key, []byte(c.object), at+1) == nil {
			t.Errorf("%s: a wrong offset is accepted", c.object)
		}
		if err := stored.Check(c.key, []byte(c.object), at); (err == nil) != c.ok {
			t.Errorf("%s: %s: %v", c.key, c.object, err)
		}
	}
}
