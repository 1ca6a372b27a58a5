package admission_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

const emulate136 = "--emulated-version=1.36"

var (
	configMaps  = resource.GroupResource{Resource: "configmaps"}
	definitions = resource.GroupResource{Group: "apiextensions.platform.io", Resource: "customresourcedefinitions"}
	limits      = resource.GroupResource{Group: "example.com", Resource: "limits", Custom: true}
)

// putValidating stores a policy for ConfigMaps and a binding of the same name.
func putValidating(t *testing.T, c *fake.Cluster, name, spec, binding string) {
	t.Helper()
	constraints := `matchConstraints: {namespaceSelector: {}, objectSelector: {}, resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`
	if strings.Contains(spec, "matchConstraints") {
		constraints = "failurePolicy: Fail"
	}
	put(t, c, "validatingadmissionpolicies", fmt.Sprintf("{metadata: {name: %s}, spec: {%s, %s}}", name, constraints, spec))
	if binding != "" {
		put(t, c, "validatingadmissionpolicybindings", fmt.Sprintf("{metadata: {name: %s}, spec: {policyName: %s, %s}}", name, name, binding))
	}
}

func put(t *testing.T, c *fake.Cluster, plural, manifest string) {
	t.Helper()
	c.Put(t, resource.GroupResource{Group: "admissionregistration.platform.io", Resource: plural}, manifest)
}

const deny = "validationActions: [Deny]"

func configMap(user, data string) services.AdmissionRequest {
	r := create("here")
	r.User.Name = user
	r.Object = []byte(`{"metadata":{"name":"c","labels":{"a":"b"}},"data":` + data + `}`)
	return r
}

// A policy denies what its validations do not accept, in the words and with the codes of the
// original.
func TestPolicies(t *testing.T) {
	const prefix = `configmaps "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: `
	for name, x := range map[string]struct {
		spec, binding, data, message string
		code                         int32
	}{
		"accepted":              {`validations: [{expression: "object.data.v == '1'"}]`, deny, `{"v":"1"}`, "", 0},
		"denied":                {`validations: [{expression: "object.data.v == '1'"}]`, deny, `{"v":"2"}`, "failed expression: object.data.v == '1'", 422},
		"with a message":        {`validations: [{expression: "false", message: " not so ", reason: Forbidden}]`, deny, `{}`, "not so", 403},
		"with a composed one":   {`validations: [{expression: "false", message: a, messageExpression: "'was ' + object.data.v", reason: Unauthorized}]`, deny, `{"v":"2"}`, "was 2", 401},
		"whose message fails":   {`validations: [{expression: "false", message: a, messageExpression: "object.data.v"}]`, deny, `{}`, "a", 422},
		"whose message is huge": {`validations: [{expression: "false", messageExpression: "object.data.v"}]`, deny, `{"v":"` + strings.Repeat("x", 6000) + `"}`, "failed expression: false", 422},
		"of two lines":          {`validations: [{expression: "false", messageExpression: "'a\\nb'"}]`, deny, `{}`, "failed expression: false", 422},
		"the first counts":      {`validations: [{expression: "true"}, {expression: "1 > 2"}, {expression: "2 > 3"}]`, deny, `{}`, "failed expression: 1 > 2", 422},
		"a missing field":       {`validations: [{expression: "object.spec.n == 1"}]`, deny, `{}`, "expression 'object.spec.n == 1' resulted in error: no such key: spec", 422},
		"a missing field, open": {`failurePolicy: Ignore, validations: [{expression: "object.spec.n == 1"}]`, deny, `{}`, "", 0},
		"not compiled":          {`validations: [{expression: "object."}]`, deny, `{}`, "compilation error: compilation failed", 422},
		"variables":             {`variables: [{name: x, expression: "int(object.data.v)"}, {name: m, expression: "variables.x * 2"}], validations: [{expression: "variables.m < 10", messageExpression: "string(variables.m)"}]`, deny, `{"v":"7"}`, "14", 422},
		"a variable that fails": {`variables: [{name: x, expression: "int(object.data.v)"}], validations: [{expression: "variables.x < 10"}]`, deny, `{"v":"x"}`, `composited variable "x" fails to evaluate`, 422},
		"one that is not used":  {`variables: [{name: x, expression: "int(object.data.v)"}], validations: [{expression: "object.data.v != 'y' || variables.x < 10"}]`, deny, `{"v":"x"}`, "", 0},
		"conditions":            {`matchConditions: [{name: a, expression: "request.userInfo.username != 'ann'"}], validations: [{expression: "false"}]`, deny, `{}`, "", 0},
		"a failing condition":   {`matchConditions: [{name: a, expression: "object.x == 1"}], validations: [{expression: "true"}]`, deny, `{}`, "no such key: x", 422},
		"authorizer":            {`validations: [{expression: "authorizer.requestResource.check('delete').allowed()"}]`, deny, `{}`, "failed expression: authorizer", 422},
		"its namespace":         {`validations: [{expression: "namespaceObject.metadata.name == 'here' && namespaceObject.status.phase == 'Active'"}]`, deny, `{}`, "", 0},
		"only warned":           {`validations: [{expression: "false"}]`, "validationActions: [Warn]", `{}`, "", 0},
		"not bound":             {`validations: [{expression: "false"}]`, "", `{}`, "", 0},
		"bound elsewhere":       {`validations: [{expression: "false"}]`, deny + `, matchResources: {namespaceSelector: {matchLabels: {a: b}}, objectSelector: {}}`, `{}`, "", 0},
		"bound by labels":       {`validations: [{expression: "false"}]`, deny + `, matchResources: {namespaceSelector: {}, objectSelector: {matchLabels: {a: b}}}`, `{}`, "failed expression: false", 422},
		"another resource":      {`matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]}, validations: [{expression: "false"}]`, deny, `{}`, "", 0},
		"another name":          {`matchConstraints: {resourceRules: [{resourceNames: [d], operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: ["*"]}]}, validations: [{expression: "false"}]`, deny, `{}`, "", 0},
		"excluded":              {`matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: ["*"]}], excludeResourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}, validations: [{expression: "false"}]`, deny, `{}`, "", 0},
		"too expensive":         {`validations: [{expression: "[1,2,3,4,5].all(x, authorizer.group(string(x)).resource('a').check('get').allowed() || true)"}]`, deny, `{}`, "cost limit exceeded", 422},
		"too expensive message": {`validations: [{expression: "false", message: a, messageExpression: "[1,2,3,4,5,6,7,8,9,0].map(a, [1,2,3,4,5,6,7,8,9,0].map(b, [1,2,3,4,5,6,7,8,9,0].map(c, [1,2,3,4,5,6,7,8,9,0].map(d, [1,2,3,4,5,6,7,8,9,0].map(e, 'x'))))).size() > 0 ? 'y' : 'z'"}]`, deny, `{}`, "a", 422},
		"annotations that fail": {`validations: [{expression: "true"}], auditAnnotations: [{key: k, valueExpression: "string(object.x)"}]`, deny, `{}`, "no such key: x", 422},
	} {
		c := cluster(t)
		putValidating(t, c, "p", x.spec, x.binding)
		_, err := started(t, c, emulate136).Validate(t.Context(), configMap("ann", x.data))
		refusal := services.AsStatus(err)
		switch {
		case x.code == 0 && refusal == nil:
		case refusal == nil || refusal.Code != x.code || !strings.Contains(refusal.Message, x.message) || !strings.HasPrefix(refusal.Message, prefix):
			t.Errorf("%s: %+v", name, refusal)
		case !strings.Contains(refusal.Details.Causes[0].Message, x.message):
			t.Errorf("%s: causes %+v", name, refusal.Details.Causes)
		}
	}
}

// Policies find their parameters: by name or selector, in the namespace of the object or of
// the binding, of ConfigMaps and custom types.
func TestPolicyParameters(t *testing.T) {
	const byConfig = `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "params != null && object.data.v == params.data.v", messageExpression: "'not ' + params.data.v"}]`
	const byCustom = `paramKind: {apiVersion: example.com/v1, kind: Limit}, validations: [{expression: "int(object.data.v) < params.spec.max", messageExpression: "params.kind + ' ' + params.apiVersion"}]`
	for name, x := range map[string]struct{ spec, binding, n, message string }{
		"by name":                {byConfig, "paramRef: {name: one, parameterNotFoundAction: Deny}", "1", ""},
		"that differs":           {byConfig, "paramRef: {name: one, parameterNotFoundAction: Deny}", "2", "denied request: not 1"},
		"of another namespace":   {byConfig, "paramRef: {name: far, namespace: going, parameterNotFoundAction: Deny}", "2", "denied request: not 5"},
		"by selector":            {byConfig, "paramRef: {selector: {matchLabels: {all: 'yes'}}, parameterNotFoundAction: Deny}", "1", "denied request: not 3"},
		"missing, denied":        {byConfig, "paramRef: {name: none, parameterNotFoundAction: Deny}", "1", "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		"missing, allowed":       {byConfig, "paramRef: {name: none, parameterNotFoundAction: Allow}", "9", ""},
		"none by selector":       {byConfig, "paramRef: {selector: {matchLabels: {all: 'no'}}, parameterNotFoundAction: Deny}", "1", "no params found"},
		"not bound":              {byConfig, "", "1", "failed expression: params != null"},
		"of a custom type":       {byCustom, "paramRef: {name: ten, parameterNotFoundAction: Deny}", "5", ""},
		"that is exceeded":       {byCustom, "paramRef: {name: ten, parameterNotFoundAction: Deny}", "15", "denied request: Limit example.com/v1"},
		"namespace of none":      {byCustom, "paramRef: {name: ten, namespace: here, parameterNotFoundAction: Deny}", "5", "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"},
		"of an unknown kind":     {strings.Replace(byCustom, "Limit", "Other", 1), "paramRef: {name: ten, parameterNotFoundAction: Deny}", "5", "paramKind kind `&ParamKind{APIVersion:example.com/v1,Kind:Other,}` not known"},
		"of a built-in one":      {strings.Replace(byConfig, "ConfigMap", "Secret", 1), "paramRef: {name: one, parameterNotFoundAction: Deny}", "1", "not known"},
		"both name and selector": {byConfig, "paramRef: {name: one, selector: {}, parameterNotFoundAction: Deny}", "1", "mutually exclusive"},
		"unknown kind, but open": {"failurePolicy: Ignore, " + strings.Replace(byCustom, "Limit", "Other", 1), "paramRef: {name: ten, parameterNotFoundAction: Deny}", "5", ""},
	} {
		c := cluster(t)
		c.Put(t, configMaps, `{metadata: {name: one, namespace: here, labels: {all: "yes"}}, data: {v: "1"}}`)
		c.Put(t, configMaps, `{metadata: {name: two, namespace: here, labels: {all: "yes"}}, data: {v: "3"}}`)
		c.Put(t, configMaps, `{metadata: {name: far, namespace: going}, data: {v: "5"}}`)
		c.Put(t, definitions, `{metadata: {name: limits.example.com}, spec: {group: example.com, scope: Cluster, names: {plural: limits, kind: Limit}, versions: [{name: v1, served: true}, {name: v2, served: true}]}}`)
		c.Put(t, limits, `{apiVersion: example.com/v2, kind: Limit, metadata: {name: ten}, spec: {max: 10}}`)
		binding := deny
		if x.binding != "" {
			binding += ", " + x.binding
		}
		putValidating(t, c, "p", x.spec, binding)
		_, err := started(t, c, emulate136).Validate(t.Context(), configMap("ann", `{"v":"`+x.n+`"}`))
		if refusal := services.AsStatus(err); (refusal == nil) != (x.message == "") || refusal != nil && !strings.Contains(refusal.Message, x.message) {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
}

// Violations are warned of and audited as the binding says, and annotations are joined.
func TestPolicyNotes(t *testing.T) {
	c := cluster(t)
	putValidating(t, c, "p", `validations: [{expression: "true"}, {expression: "false", message: bad}], auditAnnotations: [{key: who, valueExpression: "request.userInfo.username"}, {key: none, valueExpression: "null"}]`,
		"validationActions: [Warn, Audit]")
	put(t, c, "validatingadmissionpolicybindings", `{metadata: {name: q}, spec: {policyName: p, validationActions: [Audit]}}`)
	got, err := started(t, c, emulate136).Validate(t.Context(), configMap("ann", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': bad" {
		t.Errorf("%q", got.Warnings)
	}
	want := `[{"message":"bad","policy":"p","binding":"p","expressionIndex":1,"validationActions":["Warn","Audit"]},` +
		`{"message":"bad","policy":"p","binding":"q","expressionIndex":1,"validationActions":["Audit"]}]`
	if got.AuditAnnotations["validation.policy.admission.platform.io/validation_failure"] != want || got.AuditAnnotations["p/who"] != "ann" {
		t.Errorf("%q", got.AuditAnnotations)
	}
	if _, found := got.AuditAnnotations["p/none"]; found {
		t.Error("null is annotated")
	}
}

// Wrong policies can be repaired, and release 1.21 has none.
func TestPoliciesDoNotApply(t *testing.T) {
	c := cluster(t)
	putValidating(t, c, "p", `matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]}, validations: [{expression: "false"}]`, deny)
	a := started(t, c, emulate136)
	own := create("")
	own.Group, own.Resource = "admissionregistration.platform.io", "validatingadmissionpolicies"
	if _, err := a.Validate(t.Context(), own); err != nil {
		t.Error(err)
	}
	if _, err := a.Validate(t.Context(), create("here")); services.AsStatus(err) == nil || services.AsStatus(err).Code != http.StatusUnprocessableEntity {
		t.Error(err)
	}
	if _, err := started(t, c).Validate(t.Context(), create("here")); err != nil {
		t.Errorf("release 1.21: %v", err)
	}
}

// Thousands of policies that do not match cost little, and those that do are bounded by the
// deadline of the request.
func TestManyPolicies(t *testing.T) {
	c := cluster(t)
	for i := range 600 {
		putValidating(t, c, fmt.Sprintf("p%04d", i), fmt.Sprintf(`variables: [{name: x, expression: "%d"}], validations: [{expression: "variables.x >= 0"}]`, i), deny)
	}
	for i := range 3000 {
		putValidating(t, c, fmt.Sprintf("q%04d", i), `matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]}, validations: [{expression: "false"}]`, deny)
	}
	a := started(t, c, emulate136)
	for range 2 {
		if _, err := a.Validate(t.Context(), configMap("ann", `{}`)); err != nil {
			t.Error(err)
		}
	}
}
