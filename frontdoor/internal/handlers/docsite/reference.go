package docsite

import (
	"encoding/json"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/docs"
	"github.com/portico-platform/portico/frontdoor/internal/http/static"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

const (
	// typesFolder has a page for each definition.
	typesFolder = "reference/types/"
	pointer     = "#/definitions/"
)

// reference renders a page of a template in the frame.
func (s *Site) reference(name, title string, data any) ([]byte, error) {
	body, err := execute(strings.TrimPrefix(name, "reference/"), data)
	if err != nil {
		return nil, err
	}
	return s.framed(name, title, template.HTML(body)) // made by a template, which escapes
}

// flags lists the flags of the process.
func (s *Site) flags() ([]byte, error) {
	type flag struct{ Name, Type, Default, Usage string }
	var all []flag
	if s.Flags != nil {
		s.Flags.VisitAll(func(f *pflag.Flag) {
			argument, usage := pflag.UnquoteUsage(f)
			all = append(all, flag{f.Name, argument, f.DefValue, usage})
		})
	}
	return s.reference("reference/flags", "Flags", all)
}

// metrics lists the metrics of all processes.
func (s *Site) metrics() ([]byte, error) {
	type metric struct{ Name, Type, Labels, Processes string }
	content, err := docs.Files.ReadFile("reference/metrics.txt")
	if err != nil {
		return nil, err
	}
	var all []metric
	for line := range strings.Lines(string(content)) {
		switch f := strings.Fields(line); len(f) {
		case 4:
			all = append(all, metric{f[0], f[1], spaced(strings.Trim(f[2], "-")), spaced(f[3])})
		case 5: // used
			all = append(all, metric{f[0], f[1], spaced(strings.Trim(f[2], "-")), spaced(f[3]) + "; once used"})
		}
	}
	return s.reference("reference/metrics", "Metrics", all)
}

func spaced(list string) string { return strings.ReplaceAll(list, ",", ", ") }

// types returns the built-in types in the order of discovery.
func (s *Site) types() (all []*catalogue.Type) {
	if s.Types == nil {
		return nil
	}
	for _, group := range s.Types.Groups() {
		for _, version := range group.Versions {
			all = append(all, version.Types...)
		}
	}
	return all
}

func (s *Site) kinds() ([]byte, error) { return s.reference("reference/kinds", "Kinds", s.types()) }

func (s *Site) kindEntries() (all []entry) {
	for _, t := range s.types() {
		all = append(all, entry{Path: typesFolder + t.Definition, Page: t.Kind, Section: groupVersion(t), Text: strings.Join(append([]string{t.Resource, t.Singular}, t.ShortNames...), " ")})
	}
	return all
}

func groupVersion(t *catalogue.Type) string { return strings.TrimPrefix(t.Group+"/"+t.Version, "/") }

// definitionPage describes a definition, and the types that have it.
type definitionPage struct {
	Name, Short string
	Description string
	Kinds       []*catalogue.Type
	Fields      []fieldRow
	Rules       string
}

// fieldRow describes a field.
type fieldRow struct {
	Name, Type, Link string
	Required         bool
	Description      string
	Values           string
}

// definition returns the page of a definition.
func (s *Site) definition(name string) (*static.File, error) {
	schema := s.Types.Definitions().Get(name)
	p := definitionPage{Name: name, Short: short(name), Description: schema.Description}
	for _, t := range s.types() {
		if t.Definition == name {
			p.Kinds = append(p.Kinds, t)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[field]
		row := fieldRow{Name: field, Required: slices.Contains(schema.Required, field), Description: property.Description}
		row.Type, row.Link = typeOf(&property)
		for _, value := range property.Enum {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			row.Values += string(text) + " "
		}
		p.Fields = append(p.Fields, row)
	}
	var err error
	if p.Rules, err = s.rules(name); err != nil {
		return nil, err
	}
	content, err := s.reference("reference/type", p.Short, p)
	return static.New("page.html", content), err
}

// short returns the end of a definition's name, as in apps.v1.Deployment.
func short(definition string) string {
	parts := strings.Split(definition, ".")
	return strings.Join(parts[max(0, len(parts)-3):], ".")
}

// typeOf returns the type of a field, and the definition that it refers to.
func typeOf(s *spec.Schema) (text, definition string) {
	reference := s.Ref.String()
	if reference == "" && len(s.AllOf) == 1 {
		reference = s.AllOf[0].Ref.String()
	}
	switch {
	case reference != "":
		definition = strings.TrimPrefix(reference, pointer)
		return short(definition), definition
	case s.Items != nil && s.Items.Schema != nil:
		text, definition = typeOf(s.Items.Schema)
		return "list of " + text, definition
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		text, definition = typeOf(s.AdditionalProperties.Schema)
		return "map of " + text, definition
	case len(s.Type) == 0:
		return "any", ""
	}
	text = strings.Join(s.Type, " or ")
	if s.Format != "" {
		text += " (" + s.Format + ")"
	}
	return text, ""
}

// rules returns the rules of a definition as YAML, with the keys of the files of the kinds.
func (s *Site) rules(definition string) (string, error) {
	all, err := s.allRules()
	if err != nil || all[short(definition)] == nil {
		return "", err
	}
	rules := all[short(definition)]
	text, err := json.Marshal(rules)
	if err != nil {
		return "", err
	}
	var values any
	if err := json.Unmarshal(text, &values); err != nil {
		return "", err
	}
	values = pruned(values)
	if values == nil {
		return "", nil
	}
	text, err = yaml.Marshal(values)
	return string(text), err
}

// pruned returns a value without what is empty; nil if nothing is left.
func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "since") // is in the other keys
		for key, inner := range v {
			if v[key] = pruned(inner); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return value
}
