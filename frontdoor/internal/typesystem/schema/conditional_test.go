package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// TestConditionalRules: which rules of release 1.36 apply depends on other fields. The fields of
// all causes are compared, so one too many is noticed as well.
func TestConditionalRules(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const pods = `template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}`
	const policy = `matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}, reinvocationPolicy: Never`
	for name, c := range map[string]struct {
		group, version, resource, object, old string
		want                                  []string
	}{
		"a success policy without indexes": {"batch", "v1", "jobs", `spec: {manualSelector: true, selector: {}, successPolicy: {rules: [{succeededCount: -1}]}, ` + pods + `}`, "",
			[]string{"spec.successPolicy"}},
		"a success policy with indexes": {"batch", "v1", "jobs", `spec: {manualSelector: true, selector: {}, completionMode: Indexed, completions: 2, successPolicy: {rules: [{succeededCount: -1}]}, ` + pods + `}`, "",
			[]string{"spec.successPolicy.rules[0].succeededCount"}},
		"a Service without traffic from outside": {"", "v1", "services", `spec: {ports: [{port: 1}], externalTrafficPolicy: a, healthCheckNodePort: -1, loadBalancerClass: ""}`, "",
			[]string{"spec.externalTrafficPolicy", "spec.healthCheckNodePort", "spec.loadBalancerClass"}},
		"a Service with an external address": {"", "v1", "services", `spec: {ports: [{port: 1}], externalIPs: [10.1.1.1], externalTrafficPolicy: a}`, "",
			[]string{"spec.externalTrafficPolicy"}},
		"a class in a cluster":   {"networking.", "v1", "ingressclasses", `spec: {controller: a/b, parameters: {kind: a, name: a, namespace: ""}}`, "", []string{"spec.parameters.namespace"}},
		"a class in a namespace": {"networking.", "v1", "ingressclasses", `spec: {controller: a/b, parameters: {kind: a, name: a, scope: Namespace, namespace: A}}`, "", []string{"spec.parameters.namespace"}},
		"two names of a port":    {"networking.", "v1", "ingresses", `spec: {defaultBackend: {service: {name: a, port: {name: "!", number: 1}}}}`, "", []string{"spec.defaultBackend"}},
		"no block of addresses":  {"networking.", "v1", "networkpolicies", `spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: a, except: [b]}}]}]}`, "", []string{"spec.ingress[0].from[0].ipBlock.cidr"}},
		"the end of no ports":    {"networking.", "v1", "networkpolicies", `spec: {podSelector: {}, ingress: [{ports: [{endPort: -1}]}]}`, "", []string{"spec.ingress[0].ports[0].endPort"}},
		"another range":          {"networking.", "v1", "servicecidrs", `spec: {cidrs: [a]}`, `spec: {cidrs: [10.0.0.0/24]}`, []string{"spec.cidrs[0]"}},
		"an additional range":    {"networking.", "v1", "servicecidrs", `spec: {cidrs: [10.0.0.0/24, a]}`, `spec: {cidrs: [10.0.0.0/24]}`, []string{"spec.cidrs[1]"}},
		"a patch of no type":     {"admissionregistration.", "v1", "mutatingadmissionpolicies", `spec: {mutations: [{applyConfiguration: {expression: "!"}}], ` + policy + `}`, "", []string{"spec.mutations[0].patchType"}},
		"a patch of another type": {"admissionregistration.", "v1", "mutatingadmissionpolicies", `spec: {mutations: [{patchType: JSONPatch, applyConfiguration: {expression: "!"}}], ` + policy + `}`, "",
			[]string{"spec.mutations[0].applyConfiguration", "spec.mutations[0].jsonPatch"}},
		"a revision without data": {"apps", "v1", "controllerrevisions", `revision: 1`, "", []string{"data"}},
		"a revision that is kept": {"apps", "v1", "controllerrevisions", `{metadata: {labels: {a: b}}, revision: 1}`, `revision: 1`, nil},
		"a long tenant":           {"", "v1", "pods", `spec: {containers: [{name: a, image: b}], volumes: [{name: a, quobyte: {registry: a, volume: a, tenant: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}]}`, "", []string{"spec.volumes[0].quobyte.tenant"}},
		"a unit without a target": {"", "v1", "pods", `spec: {containers: [{name: a, image: b}], volumes: [{name: a, fc: {wwids: [a], lun: -1}}]}`, "", nil},
		"stable labels":           {"", "v1", "persistentvolumes", volumeOn("topology." + engine.vocabulary.Domain + "/zone"), volumeOn("failure-domain.beta." + engine.vocabulary.Domain + "/zone"), nil},
		"other labels":            {"", "v1", "persistentvolumes", volumeOn("a"), volumeOn("failure-domain.beta." + engine.vocabulary.Domain + "/zone"), []string{"nodeAffinity"}},
	} {
		ty, ok := types.Lookup(engine.vocabulary.Group(c.group), c.version, c.resource)
		if !ok {
			t.Fatalf("no type %s", c.resource)
		}
		prepared := func(text string) map[string]any {
			object := decode(t, text)
			metadata := tree.Object(object, "metadata")
			metadata["name"] = "a"
			if ty.Namespaced {
				metadata["namespace"] = "b"
			}
			if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return object
		}
		var old map[string]any
		if c.old != "" {
			old = prepared(c.old)
		}
		var got []string
		var s *services.Status
		if errors.As(engine.Validate(t.Context(), ty, prepared(c.object), old), &s) {
			for _, cause := range s.Details.Causes {
				got = append(got, cause.Field)
			}
		}
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: causes for %q, want %q: %v", name, got, c.want, s)
		}
	}
}

// volumeOn returns a volume of nodes with a label.
func volumeOn(label string) string {
	return `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {server: a, path: /b}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: ` + label + `, operator: Exists}]}]}}}`
}

// TestNamesByObject: the names of some kinds depend on their other fields, those that are to be
// generated too.
func TestNamesByObject(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	const spec = `spec: {group: a.b, version: v1, groupPriorityMinimum: 1, versionPriority: 1}`
	for metadata, want := range map[string][]string{
		`{name: v1.a.b}`:                    nil,
		`{name: a%b}`:                       {"metadata.name: Invalid value: \"a%b\": may not contain '%'"},
		`{}`:                                {"metadata.name: Required value: name or generateName is required"},
		`{name: v1.a.b, generateName: gen}`: {"metadata.generateName: Invalid value: \"gen\": must be `spec.version+\".\"+spec.group`: \"v1.a.b\""},
	} {
		ty, _ := types.Lookup(engine.vocabulary.Group("apiregistration."), "v1", "apiservices")
		object := decode(t, `{metadata: `+metadata+`, `+spec+`}`)
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatal(err)
		}
		var got []string
		var s *services.Status
		if errors.As(engine.Validate(t.Context(), ty, object, nil), &s) {
			for _, cause := range s.Details.Causes {
				got = append(got, cause.Field+": "+cause.Message)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", metadata, got, want)
		}
	}
}

// TestEmptyAsInGo: what a typed client does not write is dropped, and what it writes is kept.
func TestEmptyAsInGo(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	for name, c := range map[string]struct{ group, resource, object, path, want string }{
		"bytes":                 {"apiregistration.", "apiservices", `spec: {caBundle: ""}`, "spec", "groupPriorityMinimum: 0\nversionPriority: 0\n"},
		"a time in a map":       {"policy", "poddisruptionbudgets", `status: {disruptedPods: {a: null}}`, "status.disruptedPods", "a: null\n"},
		"a text of a status":    {"", "persistentvolumeclaims", `status: {modifyVolumeStatus: {}}`, "status.modifyVolumeStatus", "status: \"\"\n"},
		"owners of a template":  {"", "podtemplates", `template: {metadata: {managedFields: [], labels: {a: b}}}`, "template.metadata", "labels:\n  a: b\n"},
		"traffic from outside":  {"", "services", `spec: {type: ClusterIP, externalIPs: [10.1.1.1]}`, "spec.externalTrafficPolicy", "Cluster\n"},
		"a reset of the owners": {"", "configmaps", `metadata: {managedFields: []}`, "metadata.managedFields", "[]\n"},
	} {
		ty, ok := types.Lookup(engine.vocabulary.Group(c.group), "v1", c.resource)
		if !ok {
			t.Fatalf("no type %s", c.resource)
		}
		object := decode(t, c.object)
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var part any = object
		for name := range strings.SplitSeq(c.path, ".") {
			part = part.(map[string]any)[name]
		}
		if got := dump(t, part); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
