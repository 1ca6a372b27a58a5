package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const podOfA = `{metadata: {name: p, namespace: shop}, spec: {nodeName: a, serviceAccountName: robot, imagePullSecrets: [{name: pull}],
  containers: [{env: [{valueFrom: {secretKeyRef: {name: env}}}], envFrom: [{configMapRef: {name: settings}}]}],
  initContainers: [{envFrom: [{secretRef: {name: init}}]}], ephemeralContainers: [{envFrom: [{secretRef: {name: debug}}]}],
  volumes: [{name: v, secret: {secretName: mounted}}, {name: w, projected: {sources: [{secret: {name: projected}}, {configMap: {name: root}}]}},
    {name: x, persistentVolumeClaim: {claimName: data}}, {name: scratch, ephemeral: {}}, {name: u, csi: {nodePublishSecretRef: {name: driver}}},
    {name: z, configMap: {name: files}}, {name: f, azureFile: {secretName: azure}}, {name: c, cephfs: {secretRef: {name: ceph}}}],
  resourceClaims: [{name: named, resourceClaimName: gpu}, {name: made, resourceClaimTemplateName: t}, {name: waiting, resourceClaimTemplateName: t}]},
  status: {resourceClaimStatuses: [{name: made, resourceClaimName: p-made}, {name: other, resourceClaimName: stolen}], extendedResourceClaimStatus: {resourceClaimName: p-extended}}}`

// graph has a pod of node a with all that it uses, and other objects that nodes may not use.
func graph(t *testing.T, emulated release.Release) (*fake.Cluster, *Authorizer) {
	t.Helper()
	cluster := fake.New(t)
	v := vocabulary.K8s()
	for gr, manifests := range map[resource.GroupResource][]string{
		{Resource: "pods"}: {podOfA,
			`{metadata: {name: other, namespace: shop}, spec: {nodeName: b, containers: [{envFrom: [{secretRef: {name: of-b}}]}]}}`,
			`{metadata: {name: unbound, namespace: shop}, spec: {containers: [{envFrom: [{secretRef: {name: unbound}}]}]}}`,
			`{metadata: {name: static, namespace: shop, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: a, serviceAccountName: stolen, containers: [{envFrom: [{secretRef: {name: stolen}}]}]}}`},
		{Resource: "persistentvolumes"}: {
			`{metadata: {name: pv}, spec: {claimRef: {namespace: shop, name: data}, csi: {nodeStageSecretRef: {name: stage, namespace: storage},
				nodePublishSecretRef: {name: publish, namespace: storage}, controllerPublishSecretRef: {name: control, namespace: storage}}, azureFile: {secretName: share}}}`,
			`{metadata: {name: pv-b}, spec: {claimRef: {namespace: shop, name: of-b}, csi: {nodeStageSecretRef: {name: stage-b, namespace: storage}}}}`,
			`{metadata: {name: free}, spec: {csi: {nodeStageSecretRef: {name: free, namespace: storage}}}}`},
		{Group: v.Group("resource."), Resource: "resourceslices"}: {
			`{metadata: {name: gpus-a}, spec: {nodeName: a}}`, `{metadata: {name: gpus-b}, spec: {nodeName: b}}`, `{metadata: {name: gpus}, spec: {allNodes: true}}`},
		{Group: v.Group("certificates."), Resource: "podcertificaterequests"}: {
			`{metadata: {name: p-1, namespace: shop}, spec: {podName: p, nodeName: a}}`, `{metadata: {name: other-1, namespace: shop}, spec: {podName: other, nodeName: b}}`},
		{Group: v.Group("storage."), Resource: "volumeattachments"}: {
			`{metadata: {name: at-a}, spec: {nodeName: a}}`, `{metadata: {name: at-b}, spec: {nodeName: b}}`},
	} {
		for _, m := range manifests {
			cluster.Put(t, gr, m)
		}
	}
	byRules := func(_ context.Context, q services.Attributes) services.Decision {
		return services.Decision{Allowed: q.Resource == "services" && q.Verb == "list"}
	}
	a := New(Config{Changes: cluster.Source(), Store: cluster, Vocabulary: v, Release: emulated, Rules: byRules})
	for _, loop := range a.Loops() {
		go func() { _ = loop(t.Context()) }() // they return nil when the test ends
	}
	for _, ready := range a.Ready() {
		select {
		case <-ready:
		case <-time.After(10 * time.Second):
			t.Fatal("never ready")
		}
	}
	return cluster, a
}

func agent(node string) services.UserInfo {
	return services.UserInfo{Name: "system:node:" + node, Groups: []string{"system:nodes"}}
}

func TestAuthorize(t *testing.T) {
	_, authorizer := graph(t, release.V121)
	get := func(resource, namespace, name string) services.Attributes {
		return services.Attributes{User: agent("a"), Verb: "get", Resource: resource, Namespace: namespace, Name: name}
	}
	with := func(q services.Attributes, change func(*services.Attributes)) services.Attributes {
		change(&q)
		return q
	}
	type question struct {
		ask  services.Attributes
		want bool
	}
	questions := []question{}
	for _, name := range []string{"pull", "env", "init", "debug", "mounted", "projected", "driver", "azure", "ceph"} {
		questions = append(questions, question{get("secrets", "shop", name), true}, question{get("secrets", "other", name), false})
	}
	for _, name := range []string{"of-b", "unbound", "stolen", "none"} {
		questions = append(questions, question{get("secrets", "shop", name), false})
	}
	for _, name := range []string{"settings", "root", "files"} {
		questions = append(questions, question{get("configmaps", "shop", name), true})
	}
	lease := services.Attributes{User: agent("a"), Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: "a"}
	csi := services.Attributes{User: agent("a"), Verb: "patch", Group: "storage.k8s.io", Resource: "csinodes", Name: "a"}
	token := services.Attributes{User: agent("a"), Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "robot"}
	attachment := services.Attributes{User: agent("a"), Verb: "get", Group: "storage.k8s.io", Resource: "volumeattachments", Name: "at-a"}
	questions = append(questions,
		question{get("secrets", "storage", "publish"), true}, question{get("secrets", "storage", "control"), false}, question{get("secrets", "shop", "share"), true},
		question{get("secrets", "storage", "stage"), true}, question{get("secrets", "storage", "stage-b"), false}, question{get("secrets", "storage", "free"), false},
		question{with(get("secrets", "shop", "env"), func(q *services.Attributes) { q.Verb = "watch" }), true},
		question{with(get("secrets", "shop", "env"), func(q *services.Attributes) { q.Verb = "update" }), false},
		question{with(get("secrets", "shop", ""), func(q *services.Attributes) { q.Verb = "list" }), false},
		question{with(get("secrets", "shop", "env"), func(q *services.Attributes) { q.User = agent("b") }), false},
		question{with(get("secrets", "shop", "of-b"), func(q *services.Attributes) { q.User = agent("b") }), true},
		question{with(get("secrets", "shop", "env"), func(q *services.Attributes) { q.User.Groups = nil }), false},
		question{with(get("secrets", "shop", "env"), func(q *services.Attributes) { q.User = agent("") }), false},
		question{get("persistentvolumeclaims", "shop", "data"), true}, question{get("persistentvolumeclaims", "shop", "p-scratch"), true},
		question{get("persistentvolumeclaims", "shop", "of-b"), false},
		question{with(get("persistentvolumeclaims", "shop", "data"), func(q *services.Attributes) { q.Verb, q.Subresource = "patch", "status" }), true},
		question{with(get("persistentvolumeclaims", "shop", "of-b"), func(q *services.Attributes) { q.Verb, q.Subresource = "patch", "status" }), false},
		question{get("persistentvolumes", "", "pv"), true}, question{get("persistentvolumes", "", "pv-b"), false}, question{get("persistentvolumes", "", "free"), false},
		question{attachment, true}, question{with(attachment, func(q *services.Attributes) { q.Name = "at-b" }), false},
		question{token, true}, question{with(token, func(q *services.Attributes) { q.Name = "stolen" }), false},
		question{with(token, func(q *services.Attributes) { q.Subresource = "" }), false},
		question{lease, true}, question{with(lease, func(q *services.Attributes) { q.Name = "b" }), false},
		question{with(lease, func(q *services.Attributes) { q.Namespace = "shop" }), false},
		question{with(lease, func(q *services.Attributes) { q.Verb = "list" }), false},
		question{csi, true}, question{with(csi, func(q *services.Attributes) { q.Name = "b" }), false},
		question{services.Attributes{User: agent("a"), Verb: "list", Resource: "services"}, true},
		question{services.Attributes{User: agent("a"), Verb: "delete", Resource: "services"}, false},
		question{services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: "list", Resource: "services"}, false},
	)
	for _, q := range questions {
		d, err := authorizer.Authorize(t.Context(), q.ask)
		if err != nil || d.Allowed != q.want || d.Denied {
			t.Errorf("%+v: %+v, %v", q.ask, d, err)
		}
	}
}

// TestAuthorizeLater: from release 1.36 on, a node may only read its own Node and pods, and
// what is about its name.
func TestAuthorizeLater(t *testing.T) {
	_, later := graph(t, release.V136)
	_, former := graph(t, release.V121)
	const devices, certificates = "resource.k8s.io", "certificates.k8s.io"
	type question struct {
		verb, group, resource, name, selector string
		want                                  bool
	}
	var questions []question
	ask := func(want bool, group, resource, name, selector string, verbs ...string) {
		for _, verb := range verbs {
			questions = append(questions, question{verb, group, resource, name, selector, want})
		}
	}
	ask(true, "", "nodes", "a", "", "get", "list", "watch", "create", "update", "patch")
	ask(false, "", "nodes", "b", "", "get", "list", "watch")
	ask(false, "", "nodes", "", "spec.unschedulable=false", "list", "watch", "deletecollection")
	ask(false, "", "nodes", "a", "", "delete")
	ask(true, "", "nodes/status", "a", "", "update", "patch")
	ask(false, "", "nodes/proxy", "a", "", "get", "create")
	ask(true, "", "pods", "p", "", "get", "list", "watch", "delete")
	ask(true, "", "pods", "static", "", "get")
	ask(false, "", "pods", "other", "", "get", "list", "watch")
	ask(false, "", "pods", "unbound", "", "get")
	ask(true, "", "pods", "", "spec.nodeName=a", "list", "watch", "create")
	ask(true, "", "pods", "", "status.phase!=Failed,spec.nodeName==a", "list", "watch")
	ask(true, "", "pods", "other", "metadata.name=other,spec.nodeName=a", "list") // selects nothing
	for _, selector := range []string{"", "spec.nodeName=b", "spec.nodeName!=a", "spec.nodeName=", "spec.nodeName=a=b", "spec.nodeName", "status.phase=a"} {
		ask(false, "", "pods", "", selector, "list", "watch")
	}
	ask(false, "", "pods", "", "spec.nodeName=a", "deletecollection", "update")
	ask(true, "", "pods/status", "other", "", "update", "patch") // admission compares
	ask(true, "", "pods/eviction", "other", "", "create")
	ask(false, "", "pods/exec", "p", "", "create", "get")
	ask(false, "", "pods/status", "p", "", "get")
	ask(true, "", "serviceaccounts", "robot", "", "get")
	ask(false, "", "serviceaccounts", "stolen", "", "get")
	ask(false, "", "serviceaccounts", "robot", "", "list", "watch", "update")
	for _, name := range []string{"gpu", "p-made", "p-extended"} {
		ask(true, devices, "resourceclaims", name, "", "get")
		ask(false, devices, "resourceclaims", name, "", "list", "update", "delete")
		ask(false, devices, "resourceclaims/status", name, "", "update", "get")
	}
	ask(false, devices, "resourceclaims", "stolen", "", "get")
	ask(false, devices, "resourceclaims", "", "", "get", "list")
	ask(true, devices, "resourceslices", "gpus-a", "", "get", "update", "patch", "delete")
	ask(true, devices, "resourceslices", "", "spec.nodeName=a", "list", "watch", "deletecollection", "create")
	ask(false, devices, "resourceslices", "", "", "list", "watch", "deletecollection")
	for _, name := range []string{"gpus-b", "gpus", "none", ""} {
		ask(false, devices, "resourceslices", name, "", "get", "update", "patch", "delete")
	}
	ask(false, devices, "resourceslices", "gpus-a", "", "approve")
	ask(false, devices, "resourceslices/status", "gpus-a", "", "update")
	ask(true, certificates, "podcertificaterequests", "p-1", "", "get", "create")
	ask(true, certificates, "podcertificaterequests", "", "spec.nodeName=a", "list", "watch")
	ask(false, certificates, "podcertificaterequests", "", "spec.nodeName=b", "list", "watch", "deletecollection")
	ask(false, certificates, "podcertificaterequests", "p-1", "", "update", "patch", "delete")
	ask(false, certificates, "podcertificaterequests/status", "p-1", "", "update", "get")
	for _, name := range []string{"other-1", "none", ""} {
		ask(false, certificates, "podcertificaterequests", name, "", "get")
	}
	for _, q := range questions {
		resource, subresource, _ := strings.Cut(q.resource, "/")
		a := services.Attributes{User: agent("a"), Verb: q.verb, Group: q.group, Resource: resource, Subresource: subresource, Namespace: "shop", Name: q.name, FieldSelector: q.selector}
		if d, err := later.Authorize(t.Context(), a); err != nil || d.Allowed != q.want || d.Denied || d.Revision != 0 {
			t.Errorf("%+v: %+v, %v", q, d, err)
		}
		if d, err := former.Authorize(t.Context(), a); err != nil || d.Allowed {
			t.Errorf("%+v at 1.21, without rules: %+v, %v", q, d, err)
		}
	}
}

// TestBoundPodsHoldAtOnce: a node may read the Secrets of a pod as soon as the pod is bound
// to it, and no longer once the pod is gone.
func TestBoundPodsHoldAtOnce(t *testing.T) {
	cluster, authorizer := graph(t, release.V121)
	for i := range 20 {
		name := fmt.Sprintf("p%d", i)
		cluster.Put(t, resource.GroupResource{Resource: "pods"}, fmt.Sprintf(
			`{metadata: {name: %s, namespace: shop}, spec: {nodeName: a, containers: [{envFrom: [{secretRef: {name: %s}}]}]}}`, name, name))
		ask := services.Attributes{User: agent("a"), Verb: "get", Resource: "secrets", Namespace: "shop", Name: name}
		if d, err := authorizer.Authorize(t.Context(), ask); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		cluster.Delete(resource.Key{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "shop", Name: name})
		ended := time.Now().Add(10 * time.Second)
		for d := (services.Decision{Allowed: true}); d.Allowed; {
			var err error
			if d, err = authorizer.Authorize(t.Context(), ask); err != nil || time.Now().After(ended) {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
		}
	}
}

// FuzzParsePod: stored pods of any form make no mirror fail.
func FuzzParsePod(f *testing.F) {
	f.Add(`{"spec":{"nodeName":"a","volumes":[{"name":"v","secret":{"secretName":"s"}}]}}`)
	f.Add(`{"spec":{"nodeName":"a","containers":[{"env":[{"valueFrom":null}]}]}}`)
	parse := parserOfPods(vocabulary.K8s())
	f.Fuzz(func(t *testing.T, json string) {
		o := services.Object{Key: resource.Key{Namespace: "n", Name: "p"}, JSON: []byte(json)}
		if p, err := parse(o); err == nil && p.node == "" {
			t.Errorf("%s: mirrored without a node", json)
		}
		if _, err := parseVolume(o); err != nil {
			return
		}
	})
}
