package admission_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/admission"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
)

var namespaces = resource.GroupResource{Resource: "namespaces"}

// create returns a request to create a ConfigMap in a namespace.
func create(namespace string) services.AdmissionRequest {
	return services.AdmissionRequest{Operation: services.OperationCreate, Version: "v1", Kind: "ConfigMap",
		Resource: "configmaps", Namespace: namespace, Name: "c", Object: []byte(`{"metadata":{"name":"c"}}`)}
}

// createOf returns a request to create an object in namespace here.
func createOf(group, kind, object string) services.AdmissionRequest {
	r := create("here")
	r.Group, r.Resource, r.Object = group, kind, []byte(object)
	return r
}

func TestContract(t *testing.T) {
	open := func(t *testing.T) services.Admission { return started(t, cluster(t)) }
	kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
		contracttest.Admission(t, open, contracttest.AdmissionExample{Admitted: create("here"), Rejected: create("nowhere")})
	})
}

func TestNamespaceLifecycle(t *testing.T) {
	c := cluster(t)
	a := started(t, c)
	c.Put(t, namespaces, `{metadata: {name: new}}`) // the mirror need not know it yet
	remove := services.AdmissionRequest{Operation: services.OperationDelete, Resource: "namespaces", Name: "default"}
	review := create("nowhere")
	review.Group = "authorization.platform.io"
	for _, x := range []struct {
		name    string
		request services.AdmissionRequest
		code    int32
		message string
	}{
		{"in a namespace", create("here"), 0, ""},
		{"in one that was just created", create("new"), 0, ""},
		{"in none", create("nowhere"), 404, `namespaces "nowhere" not found`},
		{"in one that is terminating", create("going"), 403, `configmaps "c" is forbidden: unable to create new content in namespace going because it is being terminated`},
		{"an access review for a missing one", review, 0, ""},
		{"deleting the default namespace", remove, 403, `namespaces "default" is forbidden: this namespace may not be deleted`},
	} {
		_, err := a.Validate(t.Context(), x.request)
		s := services.AsStatus(err)
		if x.code == 0 && err != nil || x.code != 0 && (s == nil || s.Code != x.code || s.Message != x.message) {
			t.Errorf("%s: %v", x.name, err)
		}
		if x.request.Namespace == "going" && (len(s.Details.Causes) != 1 || s.Details.Causes[0].Reason != "NamespaceTerminating") {
			t.Errorf("%s: causes %+v", x.name, s.Details.Causes)
		}
	}
}

func TestMutations(t *testing.T) {
	c := cluster(t)
	c.Put(t, resource.GroupResource{Group: "storage.platform.io", Resource: "storageclasses"},
		`{metadata: {name: fast, annotations: {storageclass.platform.io/is-default-class: "true"}}}`)
	classes := resource.GroupResource{Group: "networking.platform.io", Resource: "ingressclasses"}
	for _, name := range []string{"a", "b"} {
		c.Put(t, classes, fmt.Sprintf(`{metadata: {name: %s, annotations: {ingressclass.platform.io/is-default-class: "true"}}}`, name))
	}
	a := started(t, c, "--enable-admission-plugins=AlwaysPullImages", "--disable-admission-plugins=Priority,ServiceAccount", "--default-not-ready-toleration-seconds=42")
	tolerations := `"tolerations":[{"effect":"NoExecute","key":"node.platform.io/not-ready","operator":"Exists","tolerationSeconds":42},` +
		`{"effect":"NoExecute","key":"node.platform.io/unreachable","operator":"Exists","tolerationSeconds":300}]`
	for _, x := range []struct {
		name    string
		request services.AdmissionRequest
		want    string // empty: unchanged
	}{
		{"a pod", createOf("", "pods", `{"spec":{"containers":[{"n":9007199254740993}]}}`),
			`{"spec":{"containers":[{"imagePullPolicy":"Always","n":9007199254740993}],` + tolerations + `}}`},
		{"a pod that tolerates all", createOf("", "pods", `{"spec":{"tolerations":[{"operator":"Exists"}]}}`), ""},
		{"a claim", createOf("", "persistentvolumeclaims", `{"spec":{}}`), `{"spec":{"storageClassName":"fast"}}`},
		{"a claim with an empty class", createOf("", "persistentvolumeclaims", `{"spec":{"storageClassName":""}}`), ""},
		{"a node", createOf("", "nodes", `{}`), `{"spec":{"taints":[{"effect":"NoSchedule","key":"node.platform.io/not-ready"}]}}`},
		{"an ingress with a class", createOf("networking.platform.io", "ingresses", `{"spec":{"ingressClassName":"x"}}`), ""},
	} {
		got, err := a.Mutate(t.Context(), x.request)
		if err != nil || string(got.Object) != x.want {
			t.Errorf("%s: %s, %v", x.name, got.Object, err)
		}
	}
	_, err := a.Mutate(t.Context(), createOf("networking.platform.io", "ingresses", `{"spec":{}}`))
	if s := services.AsStatus(err); !services.IsReason(err, services.ReasonForbidden) || !strings.HasSuffix(s.Message, "2 default IngressClasses were found") {
		t.Errorf("two default classes: %v", err)
	}
	// Later releases choose the newest, and of those the first by name.
	later := cluster(t)
	for name, created := range map[string]string{"old": "2026-01-01T00:00:00Z", "newer": "2026-02-01T00:00:00Z", "new": "2026-02-01T00:00:00Z"} {
		later.Put(t, classes, fmt.Sprintf(`{metadata: {name: %s, creationTimestamp: "%s", annotations: {ingressclass.platform.io/is-default-class: "true"}}}`, name, created))
	}
	got, err := started(t, later, emulate136).Mutate(t.Context(), createOf("networking.platform.io", "ingresses", `{"spec":{}}`))
	if err != nil || string(got.Object) != `{"spec":{"ingressClassName":"new"}}` {
		t.Errorf("the newest default class: %s, %v", got.Object, err)
	}
}

// TestClaimResize: a claim may be expanded if the class named by its annotation, or else
// by its field, allows expansion.
func TestClaimResize(t *testing.T) {
	c := cluster(t)
	classes := resource.GroupResource{Group: "storage.platform.io", Resource: "storageclasses"}
	c.Put(t, classes, `{metadata: {name: grows}, allowVolumeExpansion: true}`)
	c.Put(t, classes, `{metadata: {name: stays}}`)
	a := started(t, c)
	claim := func(phase, annotation, class, size string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"c","annotations":{%s}},"spec":{"storageClassName":%q,"resources":{"requests":{"storage":%q}}},"status":{"phase":%q}}`,
			annotation, class, size, phase)
	}
	const annotated = `"volume.beta.platform.io/storage-class":"grows"`
	for _, x := range []struct {
		name, phase, annotation, class, size string
		refused                              bool
	}{
		{"grows", "Bound", "", "grows", "2Gi", false},
		{"grows by annotation", "Bound", annotated, "stays", "2Gi", false},
		{"is not bound", "Pending", "", "grows", "2Gi", true},
		{"class does not expand", "Bound", "", "stays", "2Gi", true},
		{"no class", "Bound", "", "", "2Gi", true},
		{"does not grow", "Bound", "", "stays", "1Gi", false},
	} {
		_, err := a.Validate(t.Context(), services.AdmissionRequest{Operation: services.OperationUpdate, Version: "v1", Kind: "PersistentVolumeClaim",
			Resource: "persistentvolumeclaims", Namespace: "here", Name: "c",
			OldObject: claim(x.phase, x.annotation, x.class, "1Gi"), Object: claim(x.phase, x.annotation, x.class, x.size)})
		if services.IsReason(err, services.ReasonForbidden) != x.refused {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestPriority(t *testing.T) {
	c := cluster(t)
	classes := resource.GroupResource{Group: "scheduling.platform.io", Resource: "priorityclasses"}
	c.Put(t, classes, `{metadata: {name: usual}, value: 7, globalDefault: true}`)
	a := started(t, c, "--disable-admission-plugins=DefaultTolerationSeconds,ServiceAccount")
	c.Put(t, classes, `{metadata: {name: new}, value: 8, preemptionPolicy: Never}`) // the mirror need not know it yet
	for spec, want := range map[string]string{
		`{}`: `{"preemptionPolicy":"PreemptLowerPriority","priority":7,"priorityClassName":"usual"}`,
		`{"priorityClassName":"new","priority":8}`: `{"preemptionPolicy":"Never","priority":8,"priorityClassName":"new"}`,
		`{"priorityClassName":"new","priority":9}`: "",
		`{"priorityClassName":"missing"}`:          "",
	} {
		got, err := a.Mutate(t.Context(), createOf("", "pods", `{"spec":`+spec+`}`))
		if want == "" && !services.IsReason(err, services.ReasonForbidden) || want != "" && string(got.Object) != `{"spec":`+want+`}` {
			t.Errorf("%s: %s, %v", spec, got.Object, err)
		}
	}
}

// TestPriorityOnUpdate: an update without a priority keeps the stored pod's priority.
func TestPriorityOnUpdate(t *testing.T) {
	c := cluster(t)
	classes := resource.GroupResource{Group: "scheduling.platform.io", Resource: "priorityclasses"}
	c.Put(t, classes, `{metadata: {name: usual}, value: 7, globalDefault: true}`)
	a := started(t, c, "--disable-admission-plugins=DefaultTolerationSeconds,ServiceAccount")
	old := `{"spec":{"preemptionPolicy":"Never","priority":7}}`
	for spec, want := range map[string]string{
		`{}`:               `{"spec":{"preemptionPolicy":"Never","priority":7}}`,
		`{"priority":8}`:   `{"spec":{"preemptionPolicy":"Never","priority":8}}`,
		`{"hostname":"h"}`: `{"spec":{"hostname":"h","preemptionPolicy":"Never","priority":7}}`,
		`{"preemptionPolicy":"Never","priority":7}`: "",
	} {
		got, err := a.Mutate(t.Context(), services.AdmissionRequest{Operation: services.OperationUpdate, Version: "v1", Kind: "Pod", Resource: "pods",
			Namespace: "here", Name: "p", Object: []byte(`{"spec":` + spec + `}`), OldObject: []byte(old)})
		if err != nil || string(got.Object) != want {
			t.Errorf("%s: %s, %v", spec, got.Object, err)
		}
	}
	for _, x := range []struct {
		operation services.Operation
		name      string
		refused   bool
	}{{services.OperationCreate, "other", true}, {services.OperationUpdate, "other", true}, {services.OperationUpdate, "usual", false}} {
		_, err := a.Validate(t.Context(), services.AdmissionRequest{Operation: x.operation, Group: classes.Group, Version: "v1", Kind: "PriorityClass",
			Resource: classes.Resource, Name: x.name, Object: []byte(`{"globalDefault":true,"metadata":{"name":"` + x.name + `"},"value":1}`)})
		if services.IsReason(err, services.ReasonForbidden) != x.refused {
			t.Errorf("%s of the default class %s: %v", x.operation, x.name, err)
		}
	}
}

func TestSigners(t *testing.T) {
	a := started(t, cluster(t))
	old := []byte(`{"spec":{"signerName":"example.com/x"}}`)
	signed := []byte(`{"status":{"certificate":"YQ=="}}`)
	failed := []byte(`{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`)
	for _, x := range []struct {
		user, subresource string
		object            []byte
		want              bool
	}{
		{"approver", "approval", signed, true}, {"nobody", "approval", signed, false},
		{"signer", "status", signed, true}, {"approver", "status", signed, false},
		{"signer", "status", failed, true}, {"approver", "status", failed, false}, {"nobody", "status", old, true},
	} {
		_, err := a.Validate(t.Context(), services.AdmissionRequest{
			Operation: services.OperationUpdate, Group: "certificates.platform.io", Resource: "certificatesigningrequests",
			Subresource: x.subresource, Name: "r", User: services.UserInfo{Name: x.user}, Object: x.object, OldObject: old,
		})
		if x.want != (err == nil) || !x.want && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s of %s: %v", x.subresource, x.user, err)
		}
	}
}

func TestGrants(t *testing.T) {
	c := cluster(t)
	roles := resource.GroupResource{Group: "rbac.authorization.platform.io", Resource: "clusterroles"}
	c.Put(t, roles, `{metadata: {name: gathers}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: it}}]},
		rules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"]}]}`) // an old copy, which grants nothing
	c.Put(t, roles, `{metadata: {name: part, labels: {to: it}}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`)
	c.Put(t, roles, `{metadata: {name: strong}, rules: [{verbs: [delete], apiGroups: [""], resources: [pods]}]}`)
	a := started(t, c)
	rule := func(rule string) string { return `{"rules":[` + rule + `]}` }
	bind := func(role string) string {
		return `{"roleRef":{"kind":"ClusterRole","name":"` + role + `"}}`
	}
	for _, x := range []struct {
		name, user, resource, object string
		want                         bool
	}{
		{"what it has", "jane", "roles", rule(`{"verbs":["get"],"apiGroups":[""],"resources":["pods","pods/log"]}`), true},
		{"another verb", "jane", "roles", rule(`{"verbs":["get","delete"],"apiGroups":[""],"resources":["pods"]}`), false},
		{"every verb", "jane", "roles", rule(`{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}`), false},
		{"a name it has", "jane", "roles", rule(`{"verbs":["update"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["mine"]}`), true},
		{"all names", "jane", "roles", rule(`{"verbs":["update"],"apiGroups":[""],"resources":["configmaps"]}`), false},
		{"a path", "jane", "clusterroles", rule(`{"verbs":["get"],"nonResourceURLs":["/a/b"]}`), true},
		{"another path", "jane", "clusterroles", rule(`{"verbs":["get"],"nonResourceURLs":["/b"]}`), false},
		{"an aggregation", "jane", "clusterroles", `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`, false},
		{"by escalate", "owner", "roles", rule(`{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}`), true},
		{"a role whose parts it has", "jane", "rolebindings", bind("gathers"), true},
		{"a role it has not", "jane", "rolebindings", bind("strong"), false},
		{"a role that is missing", "jane", "rolebindings", bind("none"), false},
		{"by bind", "owner", "rolebindings", bind("strong"), true},
	} {
		r := createOf("rbac.authorization.platform.io", x.resource, x.object)
		r.User.Name = x.user
		if _, err := a.Validate(t.Context(), r); x.want != (err == nil) {
			t.Errorf("%s: %v", x.name, err)
		}
		r.Operation, r.OldObject = services.OperationUpdate, r.Object
		if _, err := a.Validate(t.Context(), r); err != nil {
			t.Errorf("%s, as before: %v", x.name, err)
		}
	}
}

// TestGrantsByMetadata: of a role that grants more than the user holds, an update may
// change only the fields that the garbage collector writes. Labels are not among them,
// because other roles aggregate by labels.
func TestGrantsByMetadata(t *testing.T) {
	a := started(t, cluster(t))
	const strong, mild = `"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]`, `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`
	const gathers, owner = `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`, `[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]`
	object := func(metadata, rest string) []byte { return []byte(`{"metadata":{` + metadata + `},` + rest + `}`) }
	for _, x := range []struct {
		name, user  string
		before, now []byte
		want        bool
	}{
		{"a label", "jane", object(``, strong), object(`"labels":{"a":"b"}`, strong), false},
		{"another label", "jane", object(`"labels":{"a":"c"}`, strong), object(`"labels":{"a":"b"}`, strong), false},
		{"no label", "jane", object(`"labels":{"a":"b"}`, strong), object(``, strong), false},
		{"a label of what it has", "jane", object(``, mild), object(`"labels":{"a":"b"}`, mild), true},
		{"a label by escalate", "owner", object(``, strong), object(`"labels":{"a":"b"}`, strong), true},
		{"an annotation", "jane", object(``, strong), object(`"annotations":{"a":"b"}`, strong), false},
		{"fields of the garbage collector and the service", "jane", object(`"resourceVersion":"1","uid":"u"`, strong),
			object(`"uid":"u","finalizers":["a/b"],"ownerReferences":`+owner+`,"managedFields":[{"manager":"x"}]`, strong), true},
		{"these and a label", "jane", object(``, strong), object(`"labels":{"a":"b"},"finalizers":["a/b"]`, strong), false},
		{"an aggregation that ends", "jane", object(``, gathers), object(``, mild), false},
		{"an aggregation that is unchanged", "jane", object(``, gathers), object(`"labels":{"a":"b"}`, gathers), false},
		{"an aggregation that is collected", "jane", object(``, gathers), object(`"finalizers":["a/b"]`, gathers), true},
	} {
		r := createOf("rbac.authorization.platform.io", "clusterroles", string(x.now))
		r.Operation, r.OldObject, r.User.Name = services.OperationUpdate, x.before, x.user
		if _, err := a.Validate(t.Context(), r); x.want != (err == nil) || !x.want && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestOwnerReferences calls OwnerReferencesPermissionEnforcement.
func TestOwnerReferences(t *testing.T) {
	a := started(t, cluster(t), "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
	owned := func(kind, name string, blocks bool) []byte {
		return fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":%t}]}}`, kind, name, name, blocks)
	}
	none := []byte(`{"metadata":{}}`)
	types := []services.OwnerType{{APIVersion: "apps/v1", Kind: "ReplicaSet", Resource: "replicasets", Namespaced: true}}
	for _, x := range []struct {
		name, user  string
		before, now []byte // before is nil for a create
		want        bool
	}{
		{"a new object that blocks nothing", "jane", nil, owned("ReplicaSet", "a", false), true},
		{"a new object that blocks", "jane", nil, owned("ReplicaSet", "a", true), false},
		{"a new object that blocks what its user may finalize", "finalizer", nil, owned("ReplicaSet", "a", true), true},
		{"a new object that blocks what another may finalize", "finalizer", nil, owned("ReplicaSet", "b", true), false},
		{"a new object that blocks an unknown type", "finalizer", nil, owned("Thing", "a", true), false},
		{"a new object of a user who may finalize all types", "collector", nil, owned("Thing", "a", true), true},
		{"an owner of what its user may not delete", "jane", none, owned("ReplicaSet", "a", false), false},
		{"an owner of what its user may delete", "deleter", none, owned("ReplicaSet", "a", false), true},
		{"a blocked owner of what its user may delete", "deleter", none, owned("ReplicaSet", "a", true), false},
		{"no owner any more", "jane", owned("ReplicaSet", "a", false), none, false},
		{"an owner that is blocked later", "deleter", owned("ReplicaSet", "a", false), owned("ReplicaSet", "a", true), false},
		{"an owner that is free later", "deleter", owned("ReplicaSet", "a", true), owned("ReplicaSet", "a", false), true},
		{"the same owner", "jane", owned("ReplicaSet", "a", true), owned("ReplicaSet", "a", true), true},
	} {
		r := createOf("", "pods", string(x.now))
		r.Resource, r.OwnerTypes, r.User.Name = "configmaps", types, x.user
		if x.before != nil {
			r.Operation, r.OldObject = services.OperationUpdate, x.before
		}
		if _, err := a.Validate(t.Context(), r); x.want != (err == nil) || !x.want && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestGrantsListMissingPermissions: the error lists every permission that the user lacks.
func TestGrantsListMissingPermissions(t *testing.T) {
	a := started(t, cluster(t))
	for object, want := range map[string]string{
		`{"rules":[{"verbs":["get","delete","update"],"apiGroups":[""],"resources":["pods"]},{"verbs":["get"],"nonResourceURLs":["/b"]},` +
			`{"verbs":["get"],"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["x"]}]}`: `user "jane" (groups=[]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["delete" "update"]}
{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["x"], Verbs:["get"]}
{NonResourceURLs:["/b"], Verbs:["get"]}`,
		`{"aggregationRule":{"clusterRoleSelectors":[{}]}}`: "must have cluster-admin privileges to use the aggregationRule",
	} {
		r := createOf("rbac.authorization.platform.io", "clusterroles", object)
		r.User.Name = "jane"
		if _, err := a.Validate(t.Context(), r); !services.IsReason(err, services.ReasonForbidden) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestDenyEscalatingExec(t *testing.T) {
	c := cluster(t)
	c.Put(t, resource.GroupResource{Resource: "pods"}, `{metadata: {name: plain, namespace: here}, spec: {containers: [{}]}}`)
	c.Put(t, resource.GroupResource{Resource: "pods"}, `{metadata: {name: strong, namespace: here}, spec: {containers: [{securityContext: {privileged: true}}]}}`)
	a := started(t, c, "--enable-admission-plugins=DenyEscalatingExec")
	for name, want := range map[string]bool{"plain": true, "strong": false} {
		_, err := a.Validate(t.Context(), services.AdmissionRequest{
			Operation: services.OperationConnect, Resource: "pods", Subresource: "exec", Namespace: "here", Name: name})
		if want != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--enable-admission-plugins=NoSuchPlugin":                                          "NoSuchPlugin",
		"--disable-admission-plugins=AlwaysAdmit,Nothing":                                  "Nothing",
		"--enable-admission-plugins=AlwaysDeny --disable-admission-plugins=AlwaysDeny":     "both",
		"--vocabulary=k8s --enable-admission-plugins=DenyEscalatingExec --log-level=error": "DenyEscalatingExec",
	} {
		_, err := start(t, cluster(t), strings.Fields(args)...)
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", args, err, want)
		}
	}
	a := started(t, cluster(t), "--enable-admission-plugins=AlwaysDeny")
	if _, err := a.Validate(t.Context(), create("here")); !services.IsReason(err, services.ReasonForbidden) {
		t.Errorf("AlwaysDeny: %v", err)
	}
	a = started(t, cluster(t), "--disable-admission-plugins=NamespaceLifecycle")
	if _, err := a.Validate(t.Context(), create("nowhere")); err != nil {
		t.Errorf("without NamespaceLifecycle: %v", err)
	}
}

// cluster returns a cluster with an active namespace and a terminating one.
func cluster(t *testing.T) *fake.Cluster {
	t.Helper()
	c := fake.New(t)
	c.Put(t, namespaces, `{metadata: {name: here}, status: {phase: Active}}`)
	c.Put(t, namespaces, `{metadata: {name: going, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Terminating}}`)
	return c
}

// allow is an authorizer that grants each permission of the tests to a user named after it.
type allow struct{}

func (allow) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	if a.Verb == "use" && a.Resource == "podsecuritypolicies" && a.Namespace == "here" {
		account := a.User.Name == "system:serviceaccount:here:runner" && len(a.User.Groups) == 2 && a.Name == "b-fills" && a.Group == "policy"
		return services.Decision{Allowed: account || a.User.Name == "older" && a.Group == "extensions" || a.User.Name == "uses-"+a.Name}, nil
	}
	if a.User.Name == "collector" && a.Verb == "update" && a.Group == "*" && a.Resource == "*" && a.Subresource == "finalizers" && a.Name == "*" {
		return services.Decision{Allowed: true}, nil
	}
	if a.User.Name == "system:node:n1" && a.Verb == "request-serviceaccounts-token-audience" && a.Resource == "granted" && a.Namespace == "here" && a.Name == "robot" {
		return services.Decision{Allowed: true}, nil
	}
	if a.User.Name == "bypasser" && a.Verb == "bypass" && a.Group == "extension.portico.dev" && a.Resource == "admissionservices" && a.Name == "strict" {
		return services.Decision{Allowed: true}, nil
	}
	if a.Resource == "resourceclaims" && a.Group == "resource.platform.io" {
		return services.Decision{Allowed: a.User.Name == "scheduler" && a.Subresource == "binding" && a.Verb == "patch" && a.Namespace == "" && a.Name == "" ||
			a.User.Name == "system:serviceaccount:here:driver" && a.Subresource == "driver" && a.Verb == "associated-node:update" && a.Namespace == "here" && a.Name == "d.example.com"}, nil
	}
	if a.User.Name == "owner" && (a.Verb == "escalate" || a.Verb == "bind") {
		return services.Decision{Allowed: true}, nil
	}
	if a.User.Name == "finalizer" && a.Verb == "update" && a.Resource == "replicasets" && a.Subresource == "finalizers" && a.Namespace == "here" ||
		a.User.Name == "deleter" && a.Verb == "delete" && a.Resource == "configmaps" {
		return services.Decision{Allowed: a.User.Name == "deleter" || a.Name == "a"}, nil
	}
	ok := a.Resource == "signers" && (a.User.Name == "approver" && a.Verb == "approve" && a.Name == "example.com/*" ||
		a.User.Name == "signer" && a.Verb == "sign" && a.Name == "example.com/x")
	return services.Decision{Allowed: ok}, nil
}

func (allow) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{
		Resource: []services.ResourceRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"*"}},
			{Verbs: []string{"update"}, APIGroups: []string{"*"}, Resources: []string{"configmaps"}, ResourceNames: []string{"mine"}},
		},
		NonResource: []services.NonResourceRule{{Verbs: []string{"get"}, Paths: []string{"/a/*"}}},
	}, nil
}

// started starts the service until the end of the test and returns its contract.
func started(t *testing.T, c *fake.Cluster, args ...string) services.Admission {
	t.Helper()
	a, err := start(t, c, args...)
	if err != nil {
		t.Fatal(err)
	}
	return sound{a, t, new(atomic.Int64)}
}

func start(t testing.TB, c *fake.Cluster, args ...string) (services.Admission, error) {
	t.Helper()
	authz := run.Service{Name: "authz", Offers: []run.Dependency{contract.Authz}, Start: func(_ context.Context, n *run.Node) error {
		contract.Authz.Offer(n, allow{})
		return nil
	}}
	var offered services.Admission
	user := run.Service{Name: "frontdoor", Needs: []run.Dependency{contract.Admission}, Start: func(ctx context.Context, n *run.Node) (err error) {
		offered, err = contract.Admission.Use(ctx, n)
		return err
	}}
	app := run.App{Name: "test", Services: []run.Service{c.Service(), authz, admission.Service(), user}}
	running, err := run.Start(t.Context(), app, append([]string{"--log-level=error"}, args...))
	if err == nil {
		t.Cleanup(running.Stop)
	}
	return offered, err
}
