package admission_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/tree"
)

// merging merges the data of ConfigMaps. It refuses what does not fit.
type merging struct{ services.Converter }

func (merging) Merge(_ context.Context, object, configuration []byte, _ services.ServedType) ([]byte, error) {
	if strings.Contains(string(configuration), "unmergeable") {
		return nil, services.BadRequest("it does not fit")
	}
	into, err := tree.Decode(object)
	if err != nil {
		return nil, err
	}
	config, err := tree.Decode(configuration)
	if err != nil {
		return nil, err
	}
	maps.Copy(tree.Child(into, "data"), tree.Child(config, "data"))
	return tree.Encode(into)
}

// putMutating stores a policy for ConfigMaps and a binding of the same name.
func putMutating(t *testing.T, c *fake.Cluster, name, spec, binding string) {
	t.Helper()
	put(t, c, "mutatingadmissionpolicies", fmt.Sprintf(`{metadata: {name: %s}, spec: {
		matchConstraints: {namespaceSelector: {}, objectSelector: {}, resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}, %s}}`, name, spec))
	put(t, c, "mutatingadmissionpolicybindings", fmt.Sprintf(`{metadata: {name: %s}, spec: {policyName: %s%s}}`, name, name, binding))
}

const (
	adds   = `{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b'), value: 'c'}]"}}`
	merges = `{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: object.data.v + '!'}}"}}`
)

// Policies change objects, one mutation after the other, and refuse requests in the words of
// the original.
func TestMutatingPolicies(t *testing.T) {
	const prefix = `policy 'p' with binding 'p' denied request: `
	const params = `paramKind: {apiVersion: v1, kind: ConfigMap}, `
	for name, x := range map[string]struct{ spec, binding, data, refused string }{
		"JSON patch":               {"mutations: [" + adds + "]", "", `{"a/b":"c","v":"1"}`, ""},
		"apply configuration":      {"mutations: [" + merges + "]", "", `{"v":"1!"}`, ""},
		"both, in order":           {"mutations: [" + merges + ", " + adds + ", " + merges + "]", "", `{"a/b":"c","v":"1!!"}`, ""},
		"an object as value":       {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/data', value: Object.data{x: 'y'}}]"}}]`, "", `{"x":"y"}`, ""},
		"a copy":                   {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'copy', from: '/data/v', path: '/data/w'}]"}}]`, "", `{"v":"1","w":"1"}`, ""},
		"a failing test":           {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'test', path: '/data/v', value: '2'}, JSONPatch{op: 'remove', path: '/data/v'}]"}}, ` + adds + `]`, "", `{"a/b":"c","v":"1"}`, ""},
		"conditions":               {`matchConditions: [{name: a, expression: "object.data.v == '2'"}], mutations: [` + adds + `]`, "", `{"v":"1"}`, ""},
		"variables":                {`variables: [{name: x, expression: "object.data.v + 'x'"}], mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: variables.x}}"}}]`, "", `{"v":"1x"}`, ""},
		"params":                   {params + `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: params.data.v}}"}}]`, ", paramRef: {name: one, parameterNotFoundAction: Deny}", `{"v":"7"}`, ""},
		"several params":           {params + `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: object.data.v + params.data.v}}"}}]`, ", paramRef: {selector: {matchLabels: {all: 'yes'}}, parameterNotFoundAction: Deny}", `{"v":"178"}`, ""},
		"no params, allowed":       {params + `mutations: [` + adds + `]`, ", paramRef: {name: none, parameterNotFoundAction: Allow}", `{"v":"1"}`, ""},
		"no params, denied":        {params + `mutations: [` + adds + `]`, ", paramRef: {name: none, parameterNotFoundAction: Deny}", "", prefix + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		"not bound":                {`mutations: [` + adds + `]`, ", matchResources: {objectSelector: {matchLabels: {a: other}}}", `{"v":"1"}`, ""},
		"a missing key":            {`mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: object.data.none}}"}}]`, "", "", prefix + "expression 'Object{data: Object.data{v: object.data.none}}' resulted in error: no such key: none"},
		"a missing key, open":      {`failurePolicy: Ignore, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: object.data.none}}"}}, ` + adds + `]`, "", `{"a/b":"c","v":"1"}`, ""},
		"what does not fit":        {`mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.data{v: 'unmergeable'}}"}}]`, "", "", prefix + "error applying patch: it does not fit"},
		"a wrong type name":        {`mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: Object.spec{v: '1'}}"}}]`, "", "", prefix + `type mismatch: unexpected type name "Object.spec", expected "Object.data"`},
		"a path that is not there": {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec'}]"}}]`, "", "", prefix + "JSON Patch: "},
		"not compiled":             {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "object."}}]`, "", "", prefix + "compilation error: compilation failed"},
		"too expensive":            {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[1,2,3,4,5].all(x, authorizer.group(string(x)).resource('a').check('get').allowed() || true) ? [JSONPatch{op: 'remove', path: '/data'}] : [JSONPatch{op: 'remove', path: '/metadata'}]"}}]`, "", "", "cost limit exceeded"},
		"no object is left":        {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '', value: 1}]"}}]`, "", "", prefix + "JSON Patch: "},
	} {
		c := cluster(t)
		c.Put(t, configMaps, `{metadata: {name: one, namespace: here, labels: {all: "yes"}}, data: {v: "7"}}`)
		c.Put(t, configMaps, `{metadata: {name: two, namespace: here, labels: {all: "yes"}}, data: {v: "8"}}`)
		putMutating(t, c, "p", x.spec, x.binding)
		r := configMap("ann", `{"v":"1"}`)
		r.Converter = merging{}
		got, err := started(t, c, emulate136).Mutate(t.Context(), r)
		if refusal := services.AsStatus(err); refusal != nil || x.refused != "" {
			if refusal == nil || refusal.Code != 403 || !strings.Contains(refusal.Message, x.refused) || x.refused == "" {
				t.Errorf("%s: %+v", name, refusal)
			}
			continue
		}
		if got.Object == nil {
			got.Object = r.Object
		}
		if !strings.Contains(string(got.Object), `"data":`+x.data) {
			t.Errorf("%s: %s", name, got.Object)
		}
	}
}

// Policies come before webhooks, in the order of their names. IfNeeded sees what came after it.
func TestMutatingPoliciesAreReinvoked(t *testing.T) {
	const appends = `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/data/v', value: object.data.v + '%s'}]"}}]`
	c, s := cluster(t), serve(t)
	s.on("hook", patching(`[{"op":"replace","path":"/data/w","value":"hooked"}]`))
	configure(t, c, "mutating", "a", s.hook("hook", `rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`))
	putMutating(t, c, "a", "reinvocationPolicy: IfNeeded, "+fmt.Sprintf(appends, "a"), "")
	putMutating(t, c, "b", "reinvocationPolicy: Never, "+fmt.Sprintf(appends, "b"), "")
	putMutating(t, c, "c", "reinvocationPolicy: IfNeeded, "+fmt.Sprintf(appends, "c"), "")
	got, err := started(t, c, emulate136).Mutate(t.Context(), configMap("ann", `{"v":"","w":""}`))
	if err != nil || !strings.Contains(string(got.Object), `"data":{"v":"abcac","w":"hooked"}`) {
		t.Errorf("%s, %v", got.Object, err)
	}
}

// A review that needs to merge is repeated with a converter, before anybody is asked.
func TestMutatingPoliciesNeedAConverter(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "mutating", "a", s.hook("hook", `rules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]`))
	putMutating(t, c, "p", `matchConditions: [{name: a, expression: "false"}], mutations: [`+merges+`]`, "")
	a := started(t, c, emulate136)
	if _, err := a.Mutate(t.Context(), configMap("ann", `{"v":"1"}`)); !errors.Is(err, services.ErrNoConverter) || len(s.calls()) > 0 {
		t.Error(err)
	}
	r := configMap("ann", `{"v":"1"}`)
	r.Converter = merging{}
	if got, err := a.Mutate(t.Context(), r); err != nil || got.Unconcerned != 0 {
		t.Errorf("%v, %d", err, got.Unconcerned)
	}
	r.Operation, r.OldObject, r.Object = services.OperationDelete, r.Object, nil
	r.Converter = nil
	if _, err := a.Mutate(t.Context(), r); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	own := create("")
	own.Group, own.Resource = "admissionregistration.platform.io", "mutatingadmissionpolicies"
	if _, err := a.Mutate(t.Context(), own); err != nil {
		t.Errorf("a policy itself: %v", err)
	}
	if _, err := started(t, c).Mutate(t.Context(), configMap("ann", `{"v":"1"}`)); err != nil {
		t.Errorf("release 1.21: %v", err)
	}
}
