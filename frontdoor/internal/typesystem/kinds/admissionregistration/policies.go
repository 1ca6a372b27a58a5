package admissionregistration

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/kit/cel"
)

// maxAnnotationExpression bounds the expression of an audit annotation, in bytes.
const maxAnnotationExpression = 5 << 10

var (
	identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	// reserved are the words that are no identifiers in expressions.
	reserved = []string{"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while"}
)

func isIdentifier(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reserved, name)
}

// policyExpressions prepares the check of the expressions of a policy's spec.
func policyExpressions(c *rules.Check, m map[string]any, at *field.Path) (*expressions, bool) {
	x := newExpressions(c)
	_, x.params = m["paramKind"].(map[string]any)
	var err error
	if x.checker, err = x.engine.Checker(x.params); err != nil {
		c.Invalid(at, "", err.Error())
	}
	return x, err == nil
}

// validatingPolicy checks the spec of a ValidatingAdmissionPolicy.
func validatingPolicy(c *rules.Check, m, old map[string]any, at *field.Path) {
	ruled(c, m, at)
	x, ok := policyExpressions(c, m, at)
	if !ok {
		return
	}
	x.conditions(m, old, at)
	x.keep(rules.Objects(old, "validations"), "expression", "messageExpression")
	x.keep(rules.Objects(old, "auditAnnotations"), "valueExpression")
	x.keep(rules.Objects(old, "variables"), "expression")
	x.variables(m, at)
	validations, annotations := rules.Objects(m, "validations"), rules.Objects(m, "auditAnnotations")
	if len(validations) == 0 && len(annotations) == 0 {
		const missing = "validations or auditAnnotations must contain at least one item"
		c.Required(at.Field("validations"), missing)
		c.Required(at.Field("auditAnnotations"), missing)
	}
	for i, v := range validations {
		x.validation(v, at.Field("validations").Item(i))
	}
	for i, a := range annotations {
		x.annotation(a, at.Field("auditAnnotations").Item(i))
	}
}

// ruled checks that a policy names resources.
func ruled(c *rules.Check, m map[string]any, at *field.Path) {
	constraints, given := m["matchConstraints"].(map[string]any)
	if given && len(rules.Objects(constraints, "resourceRules")) == 0 {
		c.Required(at.Field("matchConstraints").Field("resourceRules"), "")
	}
}

func (x *expressions) validation(v map[string]any, at *field.Path) {
	x.use(cel.Condition, rules.Text(v, "expression"), at.Field("expression"), "expression is not specified")
	message, composed := rules.Text(v, "message"), rules.Text(v, "messageExpression")
	switch {
	case composed == "":
	case strings.TrimSpace(composed) == "":
		x.Invalid(at.Field("messageExpression"), composed, "must be non-empty if specified")
	default:
		x.use(cel.Message, composed, at.Field("messageExpression"), "")
	}
	switch trimmed := strings.TrimSpace(message); {
	case message != "" && trimmed == "":
		x.Invalid(at.Field("message"), message, "must be non-empty if specified")
	case strings.ContainsAny(trimmed, "\n\r"):
		x.Invalid(at.Field("message"), message, "must not contain line breaks")
	}
}

func (x *expressions) annotation(a map[string]any, at *field.Path) {
	key := rules.Text(a, "key")
	if name := rules.Text(rules.Object(x.Root, "metadata"), "name"); name == "" {
		x.Invalid(at.Field("key"), key, "requires metadata.name be non-empty")
	} else {
		x.Must(validation.IsQualifiedName, name+"/"+key, at.Field("key"))
	}
	source, where := rules.Text(a, "valueExpression"), at.Field("valueExpression")
	if len(strings.TrimSpace(source)) > maxAnnotationExpression {
		x.Required(where, "must not exceed 5120 bytes in length")
		return
	}
	x.use(cel.Annotation, source, where, "valueExpression is not specified")
}

// mutatingPolicy checks the spec of a MutatingAdmissionPolicy.
func mutatingPolicy(c *rules.Check, m, old map[string]any, at *field.Path) {
	ruled(c, m, at)
	onlyMutable(c, rules.Object(m, "matchConstraints"), at.Field("matchConstraints"))
	x, ok := policyExpressions(c, m, at)
	if !ok {
		return
	}
	x.conditions(m, old, at)
	x.keep(rules.Objects(old, "variables"), "expression")
	for _, mutation := range rules.Objects(old, "mutations") {
		x.keep([]map[string]any{rules.Object(mutation, "applyConfiguration"), rules.Object(mutation, "jsonPatch")}, "expression")
	}
	x.variables(m, at)
	mutations := rules.Objects(m, "mutations")
	if len(mutations) == 0 {
		c.Required(at.Field("mutations"), "mutations must contain at least one item")
	}
	for i, mutation := range mutations {
		x.mutation(mutation, at.Field("mutations").Item(i))
	}
}

// patchForms are the fields and the uses of expressions by the type of patches.
var patchForms = map[string]struct {
	field string
	use   cel.Use
}{"ApplyConfiguration": {"applyConfiguration", cel.ApplyConfiguration}, "JSONPatch": {"jsonPatch", cel.JSONPatch}}

func (x *expressions) mutation(m map[string]any, at *field.Path) {
	chosen := rules.Text(m, "patchType")
	if _, ok := patchForms[chosen]; !ok {
		return // refused as such
	}
	for kind, form := range patchForms {
		given, ok := m[form.field].(map[string]any)
		at := at.Field(form.field)
		switch {
		case kind != chosen && ok:
			x.Invalid(at, "{"+form.field+"}", "must not be specified when patchType is "+chosen)
		case kind == chosen && !ok:
			x.Required(at, "must be specified when patchType is "+chosen)
		case kind == chosen:
			x.use(form.use, strings.TrimSpace(rules.Text(given, "expression")), at.Field("expression"), "")
		}
	}
}

// mutatingBinding checks the spec of a MutatingAdmissionPolicyBinding.
func mutatingBinding(c *rules.Check, m, _ map[string]any, at *field.Path) {
	onlyMutable(c, rules.Object(m, "matchResources"), at.Field("matchResources"))
}

// mutable are the operations with an object to mutate.
var mutable = []string{"*", "CONNECT", "CREATE", "UPDATE"}

// onlyMutable checks that the rules name no other operations than those.
func onlyMutable(c *rules.Check, resources map[string]any, at *field.Path) {
	for _, rule := range rules.Objects(resources, "resourceRules") {
		for _, operation := range rules.Texts(rule, "operations") {
			if !slices.Contains(mutable, operation) {
				c.NotSupported(at.Field("resourceRules").Field("operations"), operation, mutable...)
			}
		}
	}
}

// validationActions checks that a violation is not both refused and a warning.
func validationActions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	actions := rules.Texts(m, "validationActions")
	if slices.Contains(actions, "Deny") && slices.Contains(actions, "Warn") {
		c.Invalid(at.Field("validationActions"), actions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
	}
}

// paramKind checks the names of a paramKind.
func paramKind(c *rules.Check, m, _ map[string]any, at *field.Path) {
	version := rules.Text(m, "apiVersion")
	group, name, grouped := strings.Cut(version, "/")
	if !grouped {
		group, name = "", version
	}
	where := at.Field("apiVersion")
	switch {
	case version == "":
	case strings.Count(version, "/") > 1:
		c.Invalid(where, version, "unexpected GroupVersion string: "+version)
	case name == "":
		c.Invalid(where, version, "version must be specified")
	default:
		c.Must(validation.IsDNS1123Subdomain, group, where)
		c.Must(validation.IsDNS1035Label, name, where)
	}
	kind := rules.Text(m, "kind")
	if kind == "" {
		return
	}
	if problems := validation.IsDNS1035Label(strings.ToLower(kind)); len(problems) > 0 {
		c.Invalid(at.Field("kind"), kind, "may have mixed case, but should otherwise match: "+strings.Join(problems, ","))
	}
}

// resourceNames checks the names of objects in a rule.
func resourceNames(c *rules.Check, m, _ map[string]any, at *field.Path) {
	names, at := rules.Texts(m, "resourceNames"), at.Field("resourceNames")
	for i, name := range names {
		c.Must(format.PathSegment, name, at.Item(i))
	}
	c.Unique(names, at)
}

// paramRef checks that parameters are found in exactly one of two ways.
func paramRef(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const both = "name and selector are mutually exclusive"
	switch name, selector := rules.Text(m, "name"), m["selector"]; {
	case name == "" && selector == nil:
		c.Required(at, "one of name or selector must be specified")
	case name != "" && selector != nil:
		c.Forbidden(at.Field("name"), both)
		c.Forbidden(at.Field("selector"), both)
	}
}

// policyStatus checks the conditions and the warnings about expressions that a controller
// reports.
func policyStatus(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Conditions(rules.Objects(m, "conditions"), at.Field("conditions"))
	at = at.Field("typeChecking").Field("expressionWarnings")
	for i, warning := range rules.Objects(rules.Object(m, "typeChecking"), "expressionWarnings") {
		for _, name := range [...]string{"fieldRef", "warning"} {
			if rules.Text(warning, name) == "" {
				c.Required(at.Item(i).Field(name), "")
			}
		}
	}
}
