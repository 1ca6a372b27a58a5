package validations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/portico-platform/portico/services"
)

// Definition are the inputs of Check besides the schema.
type Definition struct {
	// Extension is the prefix of extensions, for example "x-kubernetes-".
	Extension string
	// Environment has what new rules may use.
	Environment *environment.EnvSet
	// Stored are the schemas of the stored definition: what their rules use is valid.
	Stored []map[string]any
	// Unchanged is set for a version whose schema is not changed: the cost of each of its
	// rules may be too high by today's estimation.
	Unchanged bool
	// Malformed is set for a schema that is not structural: its rules are not compiled.
	Malformed bool
	// Refused are the paths of schemas with other errors: their rules, and those of the schemas around them, are
	// not compiled.
	Refused []string
}

// Check returns the errors of the rules of a structural schema.
func Check(raw map[string]any, at string, d Definition) []services.StatusCause {
	if !Has(raw, d.Extension) {
		return nil
	}
	where := field.NewPath(at)
	props, structural, err := typed(raw, d.Extension)
	if props == nil || err != nil && !d.Malformed {
		return []services.StatusCause{cause(field.Invalid(where, "", err.Error()))}
	}
	one := uint64(1)
	c, root := &checker{Definition: d, stored: map[string]bool{}}, node{cardinality: &one}
	for _, s := range d.Stored {
		c.remember(s)
	}
	if !d.Malformed {
		root.structural, root.declared = structural, model.SchemaDeclType(structural, true)
	}
	c.schema(props, where, root)
	c.total(where)
	causes := make([]services.StatusCause, len(c.found))
	for i, e := range c.found {
		causes[i] = cause(e)
	}
	return causes
}

// checker checks the rules of one schema.
type checker struct {
	Definition
	costs
	stored map[string]bool // expressions of the stored definition
	found  field.ErrorList
}

// remember records the expressions of a stored schema.
func (c *checker) remember(raw map[string]any) {
	list, _ := raw[c.Extension+"validations"].([]any)
	for _, item := range list {
		rule, _ := item.(map[string]any)
		for _, name := range []string{"rule", "messageExpression"} {
			if text, ok := rule[name].(string); ok {
				c.stored[text] = true
			}
		}
	}
	below(raw, func(_, _ string, s map[string]any) { c.remember(s) })
}

// RuleEnv implements schemacel.EnvLoader: a stored expression may keep what it uses.
func (c *checker) RuleEnv(set *environment.EnvSet, source string) *cel.Env {
	if c.stored[source] {
		return set.StoredExpressionsEnv()
	}
	return set.NewExpressionsEnv()
}

// MessageExpressionEnv implements schemacel.EnvLoader.
func (c *checker) MessageExpressionEnv(set *environment.EnvSet, source string) *cel.Env {
	return c.RuleEnv(set, source)
}

// schema checks the rules of a schema and of those below it, and reports whether their form
// is valid.
func (c *checker) schema(s *apiextensions.JSONSchemaProps, at *field.Path, n node) (valid bool) {
	valid = true
	c.children(s, at, n, func(child *apiextensions.JSONSchemaProps, at *field.Path, n node) {
		valid = c.schema(child, at, n) && valid
	})
	for i := range s.XValidations {
		valid = c.form(s, i, at) && valid
	}
	valid = valid && (len(c.Refused) == 0 || !c.refused(at.String()))
	if len(s.XValidations) == 0 || !valid || n.structural == nil {
		return valid
	}
	if n.declared == nil {
		c.add(field.InternalError(at.Child(c.Extension+"validations"), fmt.Errorf("internal error: failed to construct type information for %svalidations rules: "+
			"unable to convert structural schema to CEL declarations", c.Extension)))
		return valid
	}
	results, err := schemacel.Compile(n.structural, n.declared, celconfig.PerCallLimit, c.Environment, c)
	if err != nil {
		c.add(field.InternalError(at.Child(c.Extension+"validations"), err))
		return valid
	}
	for i := range results {
		c.compiled(&s.XValidations[i], &results[i], c.rule(at, i), n)
	}
	return valid
}

// refused reports whether there is an error in a schema or below it.
func (c *checker) refused(at string) bool {
	return slices.ContainsFunc(c.Refused, func(path string) bool {
		below, found := strings.CutPrefix(path, at)
		return found && (below == "" || below[0] == '.' || below[0] == '[')
	})
}

func (c *checker) add(e *field.Error) { c.found = append(c.found, e) }

// rule is the path of a rule.
func (c *checker) rule(at *field.Path, i int) *field.Path {
	return at.Child(c.Extension + "validations").Index(i)
}

var newline = regexp.MustCompile(`[\n\r]`)

// reasons are the valid reasons of rules.
var reasons = []apiextensions.FieldValueErrorReason{apiextensions.FieldValueRequired, apiextensions.FieldValueForbidden,
	apiextensions.FieldValueInvalid, apiextensions.FieldValueDuplicate}

// form checks what can be said of a rule without compiling it.
func (c *checker) form(s *apiextensions.JSONSchemaProps, i int, at *field.Path) bool {
	before, r, at := len(c.found), &s.XValidations[i], c.rule(at, i)
	source, message := strings.TrimSpace(r.Rule), strings.TrimSpace(r.Message)
	switch {
	case source == "":
		c.add(field.Required(at.Child("rule"), "rule is not specified"))
	case r.Message != "" && message == "":
		c.add(field.Invalid(at.Child("message"), r.Message, "must be non-empty if specified"))
	case newline.MatchString(message):
		c.add(field.Invalid(at.Child("message"), r.Message, "must not contain line breaks"))
	case newline.MatchString(source) && message == "":
		c.add(field.Required(at.Child("message"), "message must be specified if rule contains line breaks"))
	}
	if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
		c.add(field.Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"))
	}
	if r.Reason != nil && !slices.Contains(reasons, *r.Reason) {
		c.add(field.NotSupported(at.Child("reason"), *r.Reason, slices.Sorted(slices.Values(reasons))))
	}
	c.fieldPath(s, r.FieldPath, at.Child("fieldPath"))
	return len(c.found) == before
}

// fieldPath checks the path of the field that a rule is about.
func (c *checker) fieldPath(s *apiextensions.JSONSchemaProps, path string, at *field.Path) {
	if path == "" {
		return
	}
	if strings.TrimSpace(path) == "" {
		c.add(field.Invalid(at, path, "must be non-empty if specified"))
	}
	if newline.MatchString(path) {
		c.add(field.Invalid(at, path, "must not contain line breaks"))
	}
	if !validPath(s, path) {
		c.add(field.Invalid(at, path, "must be a valid path"))
	}
}

// compiled checks the result of compiling a rule.
func (c *checker) compiled(r *apiextensions.ValidationRule, result *schemacel.CompilationResult, at *field.Path, n node) {
	c.observe(at.Child("rule"), "estimated rule cost", n.times(result.MaxCost, result.MaxCardinality))
	if e := result.Error; e != nil {
		if e.Type == apiservercel.ErrorTypeRequired {
			c.add(field.Required(at.Child("rule"), e.Detail))
		} else {
			c.add(field.Invalid(at.Child("rule"), *r, e.Detail))
		}
	}
	switch {
	case result.MessageExpressionError != nil:
		c.add(field.Invalid(at.Child("messageExpression"), *r, result.MessageExpressionError.Detail))
	case result.MessageExpression != nil:
		c.observe(at.Child("messageExpression"), "estimated messageExpression cost", result.MessageExpressionMaxCost)
	}
	switch {
	case result.UsesOldSelf && n.uncorrelated != nil:
		c.add(field.Invalid(at.Child("rule"), r.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", n.uncorrelated)))
	case !result.UsesOldSelf && r.OptionalOldSelf != nil:
		c.add(field.Invalid(at.Child("optionalOldSelf"), *r.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	}
}
