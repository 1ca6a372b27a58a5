package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestOwnObjectsHaveManagers: what the suite itself writes has the managers that kube-apiserver 1.36 and its
// controllers give it, because tools recognize their fields by these names. Names are those of objects, or
// * for all objects of a type; an entry is a manager, its operation, and the subresource.
func TestOwnObjectsHaveManagers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the suite")
	}
	t.Parallel()
	a := startAllInOne(t, vocabulary.K8s(), "--emulated-version=1.36")
	ok(t, a.Cluster, post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"owned.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"owned","kind":"Owned"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`))
	ok(t, a.Cluster, post("/api/v1/namespaces/default/services", `{"metadata":{"name":"web"},"spec":{"ports":[{"port":443}]}}`))
	ok(t, a.Cluster, post("/apis/apiregistration.k8s.io/v1/apiservices", `{"metadata":{"name":"v1.owned.io"},"spec":{"group":"owned.io","version":"v1",
		"groupPriorityMinimum":10,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"name":"web","namespace":"default"}}}`))
	const own, client = "kube-apiserver Update", "Go-http-client Update"
	const produced, consumed = "api-priority-and-fairness-config-producer-v1 Update", "api-priority-and-fairness-config-consumer-v1 Apply status"
	for _, x := range []struct {
		path, name string
		want       []string
	}{
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "owned.example.com", []string{client, own + " status"}},
		{"/apis/apiregistration.k8s.io/v1/apiservices", "v1.", []string{own}},
		{"/apis/apiregistration.k8s.io/v1/apiservices", "v1.apps", []string{own}},
		{"/apis/apiregistration.k8s.io/v1/apiservices", "v1.owned.io", []string{client, own + " status"}},
		{"/api/v1/namespaces/default/services", "kubernetes", []string{own}},
		{"/api/v1/namespaces/default/endpoints", "kubernetes", []string{own}},
		{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "kubernetes", []string{own}},
		{"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", "*", []string{produced}},
		{"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "*", []string{consumed, produced}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "system:basic-user", []string{own}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "*", []string{own}},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles", "*", []string{own}},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", "*", []string{own}},
		{"/api/v1/namespaces/kube-system/configmaps", "extension-apiserver-authentication", []string{own}},
		{"/api/v1/namespaces", "kube-system", []string{own}},
		{"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "*", []string{own}},
		{"/apis/scheduling.k8s.io/v1/priorityclasses", "*", []string{own}},
		{"/apis/networking.k8s.io/v1/servicecidrs", "kubernetes", []string{own, "kubernetes-service-cidr-controller Apply status"}},
		{"/apis/networking.k8s.io/v1/ipaddresses", "*", []string{own}},
	} {
		eventually(t, x.path+" "+x.name+": "+strings.Join(x.want, ", "), func() bool { return slices.Equal(managersOf(t, a.Cluster, x.path, x.name), x.want) })
	}
}

// managersOf returns the managers of an object, or of all objects of a path if these are the same.
func managersOf(t *testing.T, c *cluster.Cluster, path, name string) (managers []string) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name          string
				ManagedFields []struct{ Manager, Operation, Subresource string }
			}
		}
	}
	if err := json.Unmarshal([]byte(ok(t, c, cluster.Request{Path: path}).Body), &list); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, item := range list.Items {
		if name != "*" && item.Metadata.Name != name {
			continue
		}
		var all []string
		for _, m := range item.Metadata.ManagedFields {
			all = append(all, strings.TrimSpace(m.Manager+" "+m.Operation+" "+m.Subresource))
		}
		slices.Sort(all)
		if found && !slices.Equal(all, managers) {
			return nil
		}
		managers, found = all, true
	}
	return managers
}
