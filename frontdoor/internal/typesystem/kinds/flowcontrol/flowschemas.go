package flowcontrol

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

const (
	all            = "*"
	serviceAccount = "ServiceAccount"
	maxPrecedence  = 10000
	exemptSchema   = "exempt"
	onePrecedence  = "only the schema named 'exempt' may have matchingPrecedence 1"
	namespaceIntro = "each member of this list must be '*' or a DNS-1123 label; "
)

// verbs are the verbs that a rule can name.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// precedence checks the bounds of matchingPrecedence.
func precedence(c *rules.Check, m, _ map[string]any, at *field.Path) {
	n, at := rules.Number(m, "matchingPrecedence"), at.Field("matchingPrecedence")
	if n <= 0 {
		c.Invalid(at, n, "must be a positive value")
	}
	if n > maxPrecedence {
		c.Invalid(at, n, "must not be greater than 10000")
	}
}

// exemptPrecedence checks that no other schema precedes the one of exempt requests.
func exemptPrecedence(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Number(rules.Object(m, "spec"), "matchingPrecedence") == 1 && rules.Text(rules.Object(m, "metadata"), "name") != exemptSchema {
		c.Invalid(at.Field("spec").Field("matchingPrecedence"), 1, onePrecedence)
	}
}

// flowSchemaRules checks that requests can match the rules.
func flowSchemaRules(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "resourceRules")) == 0 && len(rules.List(m, "nonResourceRules")) == 0 {
		c.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty")
	}
}

// flowSchemaSubject checks that a subject has the field of its kind, and no other. Only that one
// is looked into.
func flowSchemaSubject(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind := rules.Text(m, "kind")
	fields := map[string]string{"User": "user", "Group": "group", serviceAccount: "serviceAccount"}
	if fields[kind] == "" {
		return // reported as such
	}
	for of, name := range fields {
		switch given := m[name] != nil; {
		case of == kind && !given:
			c.Required(at.Field(name), name+" is required when subject kind is '"+kind+"'")
		case of == kind:
			subjectName(c, kind, rules.Object(m, name), at.Field(name))
		case given:
			c.Forbidden(at.Field(name), name+" is forbidden when subject kind is not '"+of+"'")
		}
	}
}

// subjectName checks the name of a user, a group or a service account. The name * means all
// service accounts of a namespace.
func subjectName(c *rules.Check, kind string, m map[string]any, at *field.Path) {
	name := rules.Text(m, "name")
	if name == "" {
		c.Required(at.Field("name"), "")
	}
	if kind != serviceAccount {
		return
	}
	if name != all {
		c.Must(validation.IsDNS1123Subdomain, name, at.Field("name"))
	}
	namespace := rules.Text(m, "namespace")
	if namespace == "" {
		c.Required(at.Field("namespace"), "must specify namespace for service account")
	}
	c.Must(validation.IsDNS1123Label, namespace, at.Field("namespace"))
}

// flowSchemaScope checks that a resource rule applies to namespaces, the cluster scope or
// both.
func flowSchemaScope(c *rules.Check, m, _ map[string]any, at *field.Path) {
	names, at := rules.Texts(m, "namespaces"), at.Field("namespaces")
	if len(names) == 0 && m["clusterScope"] != true {
		c.Required(at, "resource rules that are not cluster scoped must supply at least one namespace")
	}
	if alone(c, names, "namespaces", at) {
		return
	}
	for i, name := range names {
		for _, problem := range validation.IsDNS1123Label(name) {
			c.Invalid(at.Item(i), name, namespaceIntro+problem)
		}
	}
}

// resourceRuleLists checks the other lists of a resource rule.
func resourceRuleLists(c *rules.Check, m, _ map[string]any, at *field.Path) {
	checkVerbs(c, m, at)
	for _, list := range [...]struct{ name, one, others string }{{"apiGroups", "api group", "api groups"}, {"resources", "resource", "resources"}} {
		values, at := rules.Texts(m, list.name), at.Field(list.name)
		if len(values) == 0 {
			c.Required(at, "resource rules must supply at least one "+list.one)
		}
		alone(c, values, list.others, at)
	}
}

// nonResourceRuleLists checks the lists of a rule for paths.
func nonResourceRuleLists(c *rules.Check, m, _ map[string]any, at *field.Path) {
	checkVerbs(c, m, at)
	paths, at := rules.Texts(m, "nonResourceURLs"), at.Field("nonResourceURLs")
	if len(paths) == 0 {
		c.Required(at, "nonResourceURLs must contain at least one value")
	}
	if alone(c, paths, "non-resource URLs", at) {
		return
	}
	for i, path := range paths {
		if problem := pathProblem(path); problem != "" {
			c.Invalid(at.Item(i), path, problem)
		}
	}
}

func checkVerbs(c *rules.Check, m map[string]any, at *field.Path) {
	given, at := rules.Texts(m, "verbs"), at.Field("verbs")
	if len(given) == 0 {
		c.Required(at, "verbs must contain at least one value")
	}
	if alone(c, given, "verbs", at) {
		return
	}
	if slices.ContainsFunc(given, func(verb string) bool { return !slices.Contains(verbs, verb) }) {
		c.NotSupported(at, given, verbs...)
	}
}

// alone reports whether a list has the value that means all others, and checks that it has
// no others then.
func alone(c *rules.Check, values []string, what string, at *field.Path) bool {
	if !slices.Contains(values, all) {
		return false
	}
	if len(values) > 1 {
		c.Invalid(at, values, "if '*' is present, must not specify other "+what)
	}
	return true
}

// pathProblem returns why a path cannot match requests for anything but resources; "" if it
// can.
func pathProblem(path string) string {
	switch {
	case path == "":
		return "must not be empty"
	case !strings.HasPrefix(path, "/"):
		return "must start with slash"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case strings.Contains(strings.TrimSuffix(path, "/*"), "*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// flowControlConditions checks that the conditions of a status have different types.
func flowControlConditions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, condition := range rules.Objects(m, "conditions") {
		kind, at := rules.Text(condition, "type"), at.Field("conditions").Item(i).Field("type")
		if seen[kind] {
			c.Duplicate(at, kind)
		}
		if seen[kind] = true; kind == "" {
			c.Required(at, "")
		}
	}
}
