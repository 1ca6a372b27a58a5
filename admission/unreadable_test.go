package admission_test

import (
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// governed is a type by which admission decides, with an object of it that refuses request.
type governed struct {
	key     resource.Key
	object  string
	others  func(*testing.T, *fake.Cluster)
	request services.AdmissionRequest
}

// governing returns one object of each type that restricts, each of which refuses a request.
func governing(t *testing.T) map[string]governed {
	in := func(group, plural string) resource.Key {
		return resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: plural}, Name: "x"}
	}
	here := func(key resource.Key) resource.Key { key.Namespace = "here"; return key }
	registration := "admissionregistration.platform.io"
	rules := `rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]`
	hooks := `{metadata: {name: x}, webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail, ` + rules + `, clientConfig: {url: "https://127.0.0.1:1/"}}]}`
	policy := func(validations string) string {
		return `{metadata: {name: x}, spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]}, ` + validations + `}}`
	}
	binding := `{metadata: {name: x}, spec: {policyName: x, validationActions: [Deny]}}`
	with := func(key resource.Key, object string) func(*testing.T, *fake.Cluster) {
		return func(t *testing.T, c *fake.Cluster) { c.Put(t, key.GroupResource, object) }
	}
	refuses := policy(`validations: [{expression: "false"}]`)
	policies, bindings := in(registration, "validatingadmissionpolicies"), in(registration, "validatingadmissionpolicybindings")
	pod := createOf("", "pods", `{"metadata":{"name":"c","namespace":"here"},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"5"}}}]}}`)
	return map[string]governed{
		"mutating webhook":   {in(registration, "mutatingwebhookconfigurations"), hooks, nil, create("here")},
		"validating webhook": {in(registration, "validatingwebhookconfigurations"), hooks, nil, create("here")},
		"policy":             {policies, refuses, with(bindings, binding), create("here")},
		"binding":            {bindings, binding, with(policies, refuses), create("here")},
		"quota": {here(in("", "resourcequotas")), `{metadata: {name: x, namespace: here}, spec: {hard: {count/configmaps: "0"}}, ` +
			`status: {hard: {count/configmaps: "0"}, used: {count/configmaps: "0"}}}`, nil, create("here")},
		"limits":  {here(in("", "limitranges")), `{metadata: {name: x, namespace: here}, spec: {limits: [{type: Container, max: {cpu: "1"}}]}}`, nil, pod},
		"service": {in("extension.portico.dev", "admissionservices"), declaration(t, "x", faultyGRPC(failing(services.BadRequest("no")))(t)...), nil, create("here")},
	}
}

// judge returns the error of both phases of a request.
func judge(t *testing.T, a services.Admission, r services.AdmissionRequest) error {
	t.Helper()
	if _, err := a.Mutate(t.Context(), r); err != nil {
		return err
	}
	_, err := a.Validate(t.Context(), r)
	return err
}

// soon waits until a request is refused, or admitted.
func soon(t *testing.T, a services.Admission, r services.AdmissionRequest, refused bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		if err := judge(t, a, r); (err != nil) == refused {
			return
		} else if time.Now().After(end) {
			t.Fatalf("want refused=%v, got %v", refused, err)
		}
	}
}

// TestUnreadableConfigurations: what an object that cannot be read refused goes on being refused, and after a restart
// everything that it may be about; the error names it. Repairs and other namespaces are not affected.
func TestUnreadableConfigurations(t *testing.T) {
	for name, g := range governing(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the interval of replays
			c := cluster(t)
			c.Put(t, resource.GroupResource{Resource: "serviceaccounts"}, `{metadata: {name: default, namespace: here}}`)
			c.Put(t, namespaces, `{metadata: {name: there}, status: {phase: Active}}`)
			if g.others != nil {
				g.others(t, c)
			}
			args := []string{"--emulated-version=1.36", "--disable-admission-plugins=ServiceAccount,Priority"}
			running, err := start(t, c, args...)
			if err != nil {
				t.Fatal(err)
			}
			soon(t, running, g.request, false)
			c.Put(t, g.key.GroupResource, g.object)
			soon(t, running, g.request, true)
			revision := c.Damage(g.key)
			for range 20 { // while it becomes known
				if err := judge(t, running, g.request); err == nil {
					t.Fatal("it can no longer be read, and the request is admitted")
				}
				<-time.After(2 * time.Millisecond)
			}
			restarted, err := start(t, c, args...)
			if err != nil {
				t.Fatal(err)
			}
			if at, ok := services.UnreadableRevision(judge(t, restarted, g.request)); !ok || at != revision {
				t.Errorf("after a restart: %v", judge(t, restarted, g.request))
			}
			repair := services.AdmissionRequest{Operation: services.OperationCreate, Group: "admissionregistration.platform.io", Version: "v1",
				Kind: "ValidatingAdmissionPolicyBinding", Resource: "validatingadmissionpolicybindings", Name: "x", Object: []byte(`{"metadata":{"name":"x"}}`)}
			elsewhere := create("there")
			if g.key.Namespace == "" {
				elsewhere = repair
			}
			if err := judge(t, restarted, elsewhere); err != nil {
				t.Errorf("what it is not about: %v", err)
			}
			c.Delete(g.key)
			soon(t, restarted, g.request, false)
		})
	}
}
