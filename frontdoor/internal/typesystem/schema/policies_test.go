package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

const (
	rules1   = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}`
	ruling   = rules1 + ", validations: "
	mutating = rules1 + ", reinvocationPolicy: Never, mutations: "
	hooked   = `{name: a.example.com, clientConfig: {url: "https://a.example.com"}, sideEffects: None, admissionReviewVersions: [v1], matchConditions: `
)

// TestPolicyExpressions checks the causes of policies and webhooks, in the words of the
// original: all of each object, joined by newlines.
func TestPolicyExpressions(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	for name, c := range map[string]struct{ ty, object, old, want string }{
		"valid":                {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "object.x == 1", messageExpression: "'a'", message: b, reason: Forbidden}], auditAnnotations: [{key: k, valueExpression: "'v'"}]}`, "", ""},
		"with variables":       {"validatingadmissionpolicies", `spec: {variables: [{name: a, expression: "1"}, {name: b, expression: "variables.a + 1"}], ` + ruling + `[{expression: "variables.b == 2"}]}`, "", ""},
		"invalid":              {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "object.x =="}]}`, "", `spec.validations[0].expression: Invalid value: "object.x ==": compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>'`},
		"of a wrong type":      {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "1", messageExpression: "1"}]}`, "", "spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int\nspec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string but got int"},
		"stored":               {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "object.x =="}, {expression: "true"}]}`, `spec: {` + ruling + `[{expression: "object.x =="}]}`, `spec.validations[0].expression: Invalid value`},
		"params without kind":  {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "params.x == 1"}]}`, "", "spec.validations[0].expression: Invalid value: \"params.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'"},
		"params":               {"validatingadmissionpolicies", `spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, matchConditions: [{name: a, expression: "params.x == 1"}], ` + ruling + `[{expression: "params.x == 1"}]}`, "", ""},
		"empty":                {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: " ", message: " ", messageExpression: " "}]}`, "", "spec.validations[0].expression: Required value: expression is not specified\nspec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified\nspec.validations[0].message: Invalid value: \" \": must be non-empty if specified"},
		"of two lines":         {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "true", message: "a\nb"}]}`, "", "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"},
		"a reason":             {"validatingadmissionpolicies", `spec: {` + ruling + `[{expression: "true", reason: Unauthorized}]}`, "", `spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"`},
		"nothing":              {"validatingadmissionpolicies", `spec: {` + rules1 + `}`, "", "spec.validations: Required value: validations or auditAnnotations must contain at least one item\nspec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"},
		"no rules":             {"validatingadmissionpolicies", `spec: {matchConstraints: {}, validations: [{expression: "true"}]}`, "", "spec.matchConstraints.resourceRules: Required value"},
		"a rule":               {"validatingadmissionpolicies", `spec: {matchConstraints: {resourceRules: [{resourceNames: [a, a, "b/c"], apiGroups: [""], apiVersions: [v1], operations: [OTHER], resources: [pods]}]}, validations: [{expression: "true"}]}`, "", `spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "OTHER": supported values: "*", "CREATE", "UPDATE", "DELETE", "CONNECT"` + "\n" + `spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"` + "\n" + `spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not contain '/'`},
		"variables":            {"validatingadmissionpolicies", `spec: {variables: [{name: "a-b", expression: "1"}, {name: c, expression: ""}, {name: in, expression: "x"}], ` + ruling + `[{expression: "true"}]}`, "", `spec.variables[0].name: Invalid value: "a-b": must be a valid CEL identifier` + "\n" + `spec.variables[1].expression: Required value: expression is not specified` + "\n" + `spec.variables[2].name: Invalid value: "in": must be a valid CEL identifier` + "\n" + `spec.variables[2].expression: Invalid value: "x": compilation failed: ERROR: <input>:1:1: undeclared reference to 'x'`},
		"an annotation":        {"validatingadmissionpolicies", `spec: {` + rules1 + `, auditAnnotations: [{key: "k/l", valueExpression: "1"}, {key: m, valueExpression: ""}]}`, "", `spec.auditAnnotations[0].key: Invalid value: "a/k/l": a valid label key must`},
		"conditions":           {"validatingadmissionpolicies", `spec: {matchConditions: [{name: a, expression: "1"}, {name: a, expression: "true"}, {name: "b c", expression: ""}, {expression: "variables.x"}], ` + ruling + `[{expression: "true"}]}`, "", `spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int` + "\n" + `spec.matchConditions[1].name: Duplicate value: "a"` + "\n" + `spec.matchConditions[2].expression: Required value` + "\n" + `spec.matchConditions[2].name: Invalid value: "b c": name part must consist of`},
		"same conditions":      {"validatingadmissionpolicies", `spec: {matchConditions: [{name: a, expression: "1"}], ` + ruling + `[{expression: "true"}]}`, `spec: {matchConditions: [{name: a, expression: "1"}], ` + ruling + `[{expression: "1 > 0"}]}`, ""},
		"a kind":               {"validatingadmissionpolicies", `spec: {paramKind: {apiVersion: "a/b/c", kind: "a b"}, ` + ruling + `[{expression: "true"}]}`, "", `spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c` + "\n" + `spec.paramKind.kind: Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035 label`},
		"too many":             {"validatingadmissionpolicies", `spec: {` + ruling + `[` + strings.Repeat(`{expression: "true"}, `, 1001) + `{expression: "true"}]}`, "", `spec.validations[1000].expression: Invalid value: "true": must not be one of more than 1000 expressions`},
		"actions":              {"validatingadmissionpolicybindings", `spec: {policyName: a, validationActions: [Deny, Warn]}`, "", `spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)`},
		"mutations":            {"mutatingadmissionpolicies", `spec: {` + mutating + `[{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}, {patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec'}]"}}]}`, "", ""},
		"no mutations":         {"mutatingadmissionpolicies", `spec: {` + mutating + `[]}`, "", "spec.mutations: Required value: mutations must contain at least one item"},
		"wrong mutations":      {"mutatingadmissionpolicies", `spec: {` + mutating + `[{patchType: ApplyConfiguration, applyConfiguration: {expression: "{'a': 'b'}"}}, {patchType: JSONPatch, jsonPatch: {expression: ""}}]}`, "", `spec.mutations[0].applyConfiguration.expression: Invalid value: "{'a': 'b'}": must evaluate to Object but got map(string, string)` + "\n" + "spec.mutations[1].jsonPatch.expression: Required value"},
		"of a deletion":        {"mutatingadmissionpolicies", strings.Replace(`spec: {`+mutating+`[{patchType: JSONPatch, jsonPatch: {expression: "[]"}}]}`, `"*"`, "DELETE", 1), "", `spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"`},
		"webhook":              {"validatingwebhookconfigurations", `webhooks: [` + hooked + `[{name: a, expression: "object.x"}, {name: b, expression: "true"}, {name: b, expression: "params.x == 1"}]}]`, "", `webhooks[0].matchConditions[2].expression: Invalid value: "params.x == 1": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'`},
		"mutating webhook":     {"mutatingwebhookconfigurations", `webhooks: [` + hooked + `[{name: a, expression: "1"}]}]`, "", `webhooks[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int`},
		"same webhook":         {"mutatingwebhookconfigurations", `webhooks: [` + hooked + `[{name: a, expression: "1"}]}]`, `webhooks: [` + hooked + `[{name: a, expression: "1"}]}]`, ""},
		"webhook of 65":        {"mutatingwebhookconfigurations", `webhooks: [` + hooked + `[` + numbered(65) + `]}]`, "", "webhooks[0].matchConditions: Too many: 65: must have at most 64 items"},
		"unnamed of a webhook": {"mutatingwebhookconfigurations", `webhooks: [` + hooked + `[{expression: "true"}]}]`, "", "webhooks[0].matchConditions[0].name: Required value"},
	} {
		ty, ok := types.Lookup(engine.vocabulary.Group("admissionregistration."), "v1", c.ty)
		if !ok {
			t.Fatalf("no type %s", c.ty)
		}
		if got := causesOf(t, engine, ty, c.object, c.old); c.want == "" && got != "" || !sameLines(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// numbered returns match conditions.
func numbered(n int) (list string) {
	for i := range n {
		list += fmt.Sprintf(`{name: c%d, expression: "true"},`, i)
	}
	return list
}

// sameLines reports whether each expected line begins a line of the causes.
func sameLines(got, want string) bool {
	for line := range strings.SplitSeq(want, "\n") {
		if !strings.Contains("\n"+got, "\n"+line) {
			return false
		}
	}
	return true
}

// causesOf returns the causes of an object, each on a line. None is there twice.
func causesOf(t *testing.T, engine *Engine, ty *catalogue.Type, text, oldText string) (causes string) {
	t.Helper()
	prepared := func(text string) map[string]any {
		if text == "" {
			return nil
		}
		object := decode(t, text)
		object["metadata"] = map[string]any{"name": "a"}
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatal(err)
		}
		return object
	}
	err := engine.Validate(t.Context(), ty, prepared(text), prepared(oldText))
	var s *services.Status
	if errors.As(err, &s) {
		for _, cause := range s.Details.Causes {
			line := cause.Field + ": " + cause.Message + "\n"
			if strings.Contains("\n"+causes, "\n"+line) {
				t.Errorf("twice: %s", line)
			}
			causes += line
		}
	}
	return causes
}
