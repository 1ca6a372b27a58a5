package cel_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
)

// New expressions of a policy are refused in the words of the original.
func TestChecker(t *testing.T) {
	e := engine(nil)
	for name, x := range map[string]struct {
		use    cel.Use
		params bool
		source string
		want   string
	}{
		"condition":                   {cel.Condition, false, "object.spec.replicas < variables.most", ""},
		"condition that is a text":    {cel.Condition, false, "'a'", "must evaluate to bool but got string"},
		"condition that is no CEL":    {cel.Condition, false, "object.x >", "compilation failed: ERROR: <input>:1:11: Syntax error"},
		"params without a paramKind":  {cel.Condition, false, "params.x == 1", "undeclared reference to 'params'"},
		"params":                      {cel.Condition, true, "params.x == 1", ""},
		"an unknown variable":         {cel.Condition, false, "variables.none == 1", "undefined field 'none'"},
		"message":                     {cel.Message, false, "'a' + string(variables.most)", ""},
		"message with authorizer":     {cel.Message, false, "string(authorizer.path('/').check('get').allowed())", "undeclared reference to 'authorizer'"},
		"annotation":                  {cel.Annotation, false, "1", "must evaluate to one of [string null_type] but got int"},
		"apply configuration":         {cel.ApplyConfiguration, false, "Object{spec: Object.spec{replicas: 3}}", ""},
		"apply configuration, no map": {cel.ApplyConfiguration, false, "{'a': 'b'}", "must evaluate to Object but got map(string, string)"},
		"apply configuration, a part": {cel.ApplyConfiguration, false, "Object.spec{replicas: 3}", "must evaluate to Object but got Object.spec"},
		"JSON patch":                  {cel.JSONPatch, false, `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "c"}]`, ""},
		"JSON patch, not a list":      {cel.JSONPatch, false, `JSONPatch{op: "add"}`, "must evaluate to list(JSONPatch) but got JSONPatch"},
		"Object in a condition":       {cel.Condition, false, "Object{} == Object{}", "undeclared reference to 'Object'"},
	} {
		checker, err := e.Checker(x.params)
		if err != nil {
			t.Fatal(err)
		}
		if err := checker.Variable(cel.Variable{Name: "most", Expression: "5"}, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err = checker.Expression(x.use, x.source, false)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is stored may use everything, what is new only what survives a downgrade.
func TestCheckerOfStored(t *testing.T) {
	r, err := release.Of("1.30")
	if err != nil {
		t.Fatal(err)
	}
	const newer = `semver('1.2.3').major() == 1`
	checker, err := cel.New(cel.Config{Release: r}).Checker(false)
	if err != nil {
		t.Fatal(err)
	}
	if checker.Expression(cel.Condition, newer, false) == nil || checker.Variable(cel.Variable{Name: "a", Expression: newer}, false) == nil {
		t.Error("1.30 accepts a function of 1.33")
	}
	if err := checker.Expression(cel.Condition, newer, true); err != nil {
		t.Error(err)
	}
	if err := checker.Variable(cel.Variable{Name: "a", Expression: newer}, true); err != nil {
		t.Error(err)
	}
}
