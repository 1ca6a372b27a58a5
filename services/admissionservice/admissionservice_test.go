package admissionservice_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/admissionservice"
)

const minimal = `{endpoint: {addresses: ["a.example:443"]}, sideEffects: None, rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["*"], resources: [pods]}]}`

// read returns a completed spec, with fields that replace those of the minimal one.
func read(t *testing.T, more string) admissionservice.Spec {
	t.Helper()
	var spec, fields map[string]any
	for text, into := range map[string]*map[string]any{minimal: &spec, more: &fields} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range fields {
		spec[name] = value
	}
	admissionservice.Complete(spec)
	decoded, err := admissionservice.Decode(spec)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// compile takes expressions for valid that do not end in an operator.
func compile(expression string) error {
	if strings.HasSuffix(expression, "=") {
		return errors.New("compilation failed")
	}
	return nil
}

func TestDefaults(t *testing.T) {
	got := read(t, `{endpoint: {service: {namespace: a, name: b}}}`)
	want := admissionservice.Spec{Protocol: "grpc", Endpoint: admissionservice.Endpoint{Service: &admissionservice.Service{Namespace: "a", Name: "b", Port: intstr.FromInt32(443)}},
		Phase: "Both", MatchPolicy: "Equivalent", FailurePolicy: "Fail", TimeoutSeconds: 5, BudgetPercent: 50, SideEffects: "None", Mode: "Enforce",
		Rules: []admissionservice.Rule{{Operations: []string{"*"}, APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"pods"}, Scope: "*"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if problems := got.Check(compile); len(problems) > 0 {
		t.Error(problems)
	}
}

// TestProblems: each mistake is found, and its message names the field.
func TestProblems(t *testing.T) {
	for more, want := range map[string][]string{
		`{}`: nil,
		`{mode: Canary, canaryPercent: 10, order: -5, trust: {serverName: a.example}}`: nil,
		`{endpoint: {addresses: ["[::1]:1", "10.0.0.1:65535", "a:1"]}}`:                nil,
		`{protocol: webhook, endpoint: {url: "https://a/b"}}`:                          nil,
		`{protocol: webhook, endpoint: {service: {namespace: a, name: b, path: /c}}}`:  nil,
		`{endpoint: {service: {namespace: a, name: b, port: https}}}`:                  nil,
		`{batch: {}}`: nil,

		`{protocol: http, phase: None, matchPolicy: a, failurePolicy: b, sideEffects: "", mode: Sometimes}`: {
			"spec.protocol: unsupported", "spec.phase: unsupported", "spec.matchPolicy: unsupported", "spec.failurePolicy: unsupported",
			"spec.sideEffects: required", "spec.mode: unsupported"},
		`{timeoutSeconds: 31, budgetPercent: 0}`:                       {"spec.timeoutSeconds: invalid value 31", "spec.budgetPercent: invalid value 0"},
		`{batch: {maxRequests: 1, maxDelayMilliseconds: 101}}`:         {"spec.batch.maxRequests: invalid value 1", "spec.batch.maxDelayMilliseconds: invalid value 101"},
		`{protocol: webhook, endpoint: {url: "https://a"}, batch: {}}`: {"spec.batch: invalid"},
		`{mode: Canary}`:                     {"spec.canaryPercent: required"},
		`{mode: Canary, canaryPercent: 101}`: {"spec.canaryPercent: invalid value 101"},
		`{canaryPercent: 5}`:                 {"spec.canaryPercent: invalid value 5"},
		`{endpoint: {}}`:                     {"spec.endpoint: required"},
		`{endpoint: {url: "https://a", addresses: ["a:1"]}}`:          {"spec.endpoint: invalid"},
		`{endpoint: {addresses: ["a:1", "b:2", "a:1"]}}`:              {`spec.endpoint.addresses[2]: duplicate value "a:1"`},
		`{endpoint: {addresses: ["a", "a:0", "a:x", "A_B:1", ":1"]}}`: {"addresses[0]", "addresses[1]", "addresses[2]", "addresses[3]", "addresses[4]"},
		`{endpoint: {url: "https://a"}}`:                              {"spec.endpoint.url: invalid"},
		`{protocol: webhook}`:                                         {"spec.endpoint.addresses: invalid"},
		`{protocol: webhook, endpoint: {url: "http://a"}}`:            {"spec.endpoint.url: invalid"},
		`{protocol: webhook, endpoint: {url: "https://u:p@a"}}`:       {"spec.endpoint.url: invalid"},
		`{endpoint: {service: {namespace: a, name: b, port: a_b}}}`:   {"spec.endpoint.service.port: invalid value a_b"},
		`{endpoint: {service: {path: /a, port: 0}}}`:                  {"service.namespace: required", "service.name: required", "service.port: invalid", "service.path: invalid"},
		`{trust: {caBundle: bm9uZQ==, serverName: "a b"}}`:            {"spec.trust.serverName: invalid", "spec.trust.caBundle: invalid"},
		`{matchConditions: [{name: a, expression: "a =="}, {name: a, expression: "b"}, {name: c}, {name: "-", expression: d}]}`: {
			"matchConditions[0].expression: invalid value a ==: compilation", "matchConditions[1].name: duplicate", "matchConditions[2].expression: required",
			"matchConditions[3].name: invalid"},
		`{rules: []}`: {"spec.rules: required"},
		`{rules: [{}]}`: {"spec.rules[0].operations: required", "spec.rules[0].apiGroups: required",
			"spec.rules[0].apiVersions: required", "spec.rules[0].resources: required"},
		`{rules: [{operations: [GET, CREATE, CREATE], apiGroups: ["*", a], apiVersions: [""], resources: [pods], scope: x}]}`: {
			"spec.rules[0].operations[0]: unsupported", "spec.rules[0].operations[2]: duplicate", "spec.rules[0].apiGroups: invalid",
			"spec.rules[0].apiVersions[0]: required", "spec.rules[0].scope: unsupported"},
		`{objectSelector: {matchExpressions: [{key: a, operator: Near}]}}`: {"spec.objectSelector: invalid"},
	} {
		spec := read(t, more)
		var got []string
		for _, p := range spec.Check(compile) {
			got = append(got, p.String())
		}
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s:\n%s\nwant\n%s", more, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestWrongTypes: a spec of wrong types is an error, not a panic.
func TestWrongTypes(t *testing.T) {
	for _, text := range []string{`{"rules":1}`, `{"endpoint":[]}`, `{"trust":{"caBundle":"%"}}`, `{"rules":[1]}`, `{"endpoint":{"service":1}}`} {
		var spec map[string]any
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		admissionservice.Complete(spec)
		if _, err := admissionservice.Decode(spec); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
