// Package schemas makes random schemas of custom types and random values for them, from a seed. Tests
// compare what is done with them in process, and tools what servers do with them.
package schemas

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

// extension is the prefix of extensions of schemas.
var extension = vocabulary.K8s().Extension

// Depth is the depth of schemas for Generator.Schema that have a bit of everything.
const Depth = 3

// Generator makes schemas and values. The same seed gives the same ones.
//
// It leaves out what the library of Kubernetes does by mistake: defaults of the values of maps are neither
// validated nor pruned, those with nulls keep them, an unknown format lets a default pass, and integers are
// compared with limits whose fraction is dropped.
type Generator struct {
	*rand.Rand
	// Whole adds what servers do beyond the library's validation of values: rules, embedded resources,
	// kinds of lists and maps, odd keywords, and schemas that a definition may not have.
	Whole bool

	maps int  // that surround the schema
	odd  bool // whether keywords are used that no schema may have
}

// New returns a generator for a seed.
func New(seed uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, 7))} //nolint:gosec // the same seed must give the same schemas
}

// One returns one of some values.
func (g *Generator) One(of ...any) any { return of[g.IntN(len(of))] }

// Often reports true in percent of its calls.
func (g *Generator) Often(percent int) bool { return g.IntN(100) < percent }

// Schema returns a structural schema of a depth. That of Depth is an object.
func (g *Generator) Schema(depth int) map[string]any {
	s := map[string]any{}
	if g.Whole && depth == Depth {
		g.odd = g.Often(10)
	}
	kind := g.One("object", "object", "array", "string", "integer", "number", "boolean", "map", "anything", "int-or-string")
	if depth == 0 {
		kind = g.One("string", "integer", "number", "boolean", "int-or-string")
	}
	if depth == Depth {
		kind = "object"
	}
	switch kind {
	case "object":
		g.object(s, depth)
	case "map":
		g.maps++
		s["type"], s["additionalProperties"] = "object", g.Schema(depth-1)
		g.maps--
		if g.Often(20) {
			s["maxProperties"] = g.IntN(3)
		}
	case "array":
		g.array(s, depth)
	case "anything":
		s[extension+"preserve-unknown-fields"] = true
		if g.Often(50) {
			s["type"] = "object"
		}
	case "int-or-string":
		s[extension+"int-or-string"] = true
		if g.Often(50) {
			s["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
		}
	case "string":
		g.text(s)
	case "integer", "number":
		g.number(s, kind)
	case "boolean":
		s["type"] = "boolean"
	}
	if g.Whole {
		g.more(s)
	}
	if g.Often(15) {
		s["nullable"] = true
	}
	if value := g.Value(s, depth); g.Often(15) && depth < Depth && (g.maps == 0 || g.Whole) && !hasNull(value) {
		s["default"] = value
	}
	return s
}

func (g *Generator) object(s map[string]any, depth int) {
	s["type"] = "object"
	properties := map[string]any{}
	for _, name := range []string{"a", "b", "c", "d"} {
		if g.Often(70) {
			properties[name] = g.Schema(depth - 1)
		}
	}
	s["properties"] = properties
	if g.Often(20) {
		s["required"] = []any{g.One("a", "b")}
	}
	if g.Often(10) {
		s[extension+"preserve-unknown-fields"] = true
	}
	g.combine(s, map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}},
		map[string]any{"required": []any{"c", "d"}}, map[string]any{"minProperties": 2})
}

func (g *Generator) array(s map[string]any, depth int) {
	s["type"], s["items"] = "array", g.Schema(depth-1)
	if g.Often(20) {
		s[g.One("minItems", "maxItems").(string)] = g.IntN(3)
	}
	if g.Often(15) {
		s[extension+"preserve-unknown-fields"] = true
	}
	if g.Often(25) {
		s["items"] = map[string]any{"type": g.One("string", "integer")}
		s[extension+"list-type"] = "set"
	} else if g.Often(30) {
		s["items"] = map[string]any{"type": "object", "required": []any{"k"},
			"properties": map[string]any{"k": map[string]any{"type": "string"}, "v": g.Schema(0)}}
		s[extension+"list-type"], s[extension+"list-map-keys"] = "map", []any{"k"}
	}
}

func (g *Generator) text(s map[string]any) {
	s["type"] = "string"
	for _, x := range []struct {
		name  string
		value any
	}{{"minLength", g.IntN(3)}, {"maxLength", 1 + g.IntN(3)}, {"pattern", "^a"}, {"enum", []any{"a", "ab", "z"}}, {"format", g.One("ipv4", "date-time", "byte")}} {
		if g.Often(15) {
			s[x.name] = x.value
		}
	}
	g.combine(s, map[string]any{"pattern": "^a"}, map[string]any{"minLength": 2}, map[string]any{"enum": []any{"a", "b"}})
}

func (g *Generator) number(s map[string]any, kind any) {
	s["type"] = kind
	for _, name := range []string{"minimum", "maximum", "multipleOf"} {
		if kind == "integer" && g.Often(15) {
			s[name] = map[string]int{"minimum": 2, "maximum": 9, "multipleOf": 2}[name]
		}
	}
	if kind == "integer" && g.Often(15) {
		s["format"] = g.One("int32", "int64")
	}
	g.combine(s, map[string]any{"minimum": 3}, map[string]any{"maximum": 5})
}

// more adds what Whole is about.
func (g *Generator) more(s map[string]any) {
	switch s["type"] {
	case "object":
		if g.Often(10) {
			s[extension+"map-type"] = g.One("atomic", "granular")
		}
		if _, properties := s["properties"]; g.Often(8) {
			s[extension+"embedded-resource"] = true
			if !properties || g.Often(50) {
				s[extension+"preserve-unknown-fields"] = true
				delete(s, "additionalProperties")
			}
		}
		if g.Often(8) {
			s[g.One("minProperties", "maxProperties").(string)] = g.IntN(4)
		}
		g.combine(s, map[string]any{"properties": map[string]any{"a": map[string]any{"enum": []any{"a", 1}}}},
			map[string]any{"properties": map[string]any{"b": map[string]any{"minLength": 2}}, "required": []any{"b"}},
			map[string]any{"not": map[string]any{"required": []any{"c"}}},
			map[string]any{"anyOf": []any{map[string]any{"required": []any{"d"}}, map[string]any{"maxProperties": 1}}})
		if properties, _ := s["properties"].(map[string]any); properties["a"] != nil && properties["b"] != nil {
			g.rule(s, "has(self.a)", "!has(self.b) || has(self.a)", "self == oldSelf", "!has(self.a) || self.a != oldSelf.?a.orValue(self.a)")
		} else if s["additionalProperties"] != nil {
			g.rule(s, "size(self) < 3", "self.all(k, k != 'b')", "self == oldSelf")
		}
	case "array":
		if s[extension+"list-type"] == nil && g.Often(20) {
			s[extension+"list-type"] = g.One("atomic", "set", "map")
		}
		if items, _ := s["items"].(map[string]any); s[extension+"list-type"] == "map" && items["required"] != nil && g.Often(30) {
			items["properties"].(map[string]any)["l"] = map[string]any{"type": "integer", "default": 1}
			s[extension+"list-map-keys"] = []any{"k", "l"}
		}
		if g.Often(80) && s["maxItems"] == nil {
			s["maxItems"] = 5
		}
		if g.Often(4) {
			s["uniqueItems"] = g.Often(50)
		}
		g.combine(s, map[string]any{"minItems": 2}, map[string]any{"maxItems": 1}, map[string]any{"items": map[string]any{"enum": []any{"a", 1}}})
		g.rule(s, "self.size() < 3", "self.all(x, x == self[0])", "self == oldSelf", "self.exists_one(x, x == self[0])")
	case "string":
		if g.Often(10) {
			s["format"] = g.One("ipv6", "date", "duration", "uuid", "cidr", "uri", "email", "hostname", "int32", "odd", "password", "mac")
		}
		if g.Often(5) {
			s["enum"] = []any{"", "a", "ab", "z", "b"}
		}
		g.rule(s, "self != 'z'", "self.startsWith('a')", "self == oldSelf", "size(self) > 1", "self.matches('^[ab]')", "self in ['a', 'ab']")
	case "integer":
		if g.Often(10) {
			s["enum"] = []any{1, 2, 4, 10, int64(3000000000)}
		}
		g.bounds(s, 1, 2, 4, 10, int64(3000000000), -1)
		g.rule(s, "self < 9", "self >= oldSelf", "self % 2 == 0", "self != 4")
	case "number":
		if g.Often(10) {
			s["enum"] = []any{0.5, 2.5, 4, 7.25, 1e21}
		}
		if g.Often(15) {
			s["format"] = g.One("float", "double", "int32")
		}
		g.bounds(s, 1, 4, int64(3000000000), -1)
		g.rule(s, "self < 9.0", "self >= oldSelf", "self != 2.5", "string(self) != '4'")
	case "boolean":
		g.rule(s, "self", "self == oldSelf")
	}
	if g.Often(3) {
		s["description"], s["title"] = "text", "é"
	}
	if g.odd && g.Often(10) {
		keyword := g.One("type", "$ref", "default", "pattern", "uniqueItems", "additionalProperties", extension+"int-or-string",
			extension+"list-map-keys", "required", "definitions", "multipleOf", "minLength", "enum").(string)
		s[keyword] = g.One("x", "a(", true, 0, []any{}, []any{"x", "x"}, map[string]any{})
	}
}

// bounds adds bounds of numbers.
func (g *Generator) bounds(s map[string]any, values ...any) {
	for _, name := range []string{"minimum", "maximum", "multipleOf"} {
		if g.Often(8) {
			s[name] = g.One(values...)
		}
	}
	if g.Often(8) {
		s[g.One("exclusiveMinimum", "exclusiveMaximum").(string)] = true
	}
}

// rule adds rules.
func (g *Generator) rule(s map[string]any, rules ...any) {
	if !g.Often(12) {
		return
	}
	var all []any
	for range 1 + g.IntN(2) {
		one := map[string]any{"rule": g.One(rules...)}
		switch g.IntN(8) {
		case 0:
			one["message"] = "not like this"
		case 1:
			one["messageExpression"] = g.One("'the value is odd'", "string(self)", "''")
		case 2:
			one["reason"] = g.One("FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired", "FieldValueDuplicate")
		case 3:
			one["fieldPath"] = g.One(".a", ".b", ".x")
		case 4:
			one["optionalOldSelf"] = true
		}
		all = append(all, one)
	}
	s[extension+"validations"] = all
}

// combine adds combinators of some conditions.
func (g *Generator) combine(s map[string]any, conditions ...any) {
	if !g.Often(20) {
		return
	}
	first, second := g.One(conditions...), g.One(conditions...)
	switch g.IntN(4) {
	case 0:
		s["not"] = first
	default:
		s[g.One("anyOf", "oneOf", "allOf").(string)] = []any{first, second}
	}
}

// Value returns a value for a schema, which often fits it.
func (g *Generator) Value(s map[string]any, depth int) any {
	if g.Often(4) {
		return g.One(nil, true, "a", int64(1), 2.5, []any{}, []any{"x"}, map[string]any{}, map[string]any{"a": int64(1)})
	}
	if g.Whole && g.Often(4) {
		return g.One(0.1, 1e21, -1, 5.0, int64(9007199254740993), "é", []any{nil}, []any{1, 1}, map[string]any{"a": nil})
	}
	switch s["type"] {
	case "object":
		object := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for _, name := range []string{"a", "b", "c", "d", "k", "l", "v", "unknown"} {
			if below, declared := properties[name].(map[string]any); declared && g.Often(60) {
				object[name] = g.Value(below, depth-1)
			} else if below, isMap := s["additionalProperties"].(map[string]any); isMap && g.Often(20) {
				object[name] = g.Value(below, depth-1)
			} else if g.Often(5) {
				object[name] = g.One("x", nil, map[string]any{"y": int64(1)})
			}
		}
		if s[extension+"embedded-resource"] == true {
			g.embedded(object)
		}
		return object
	case "array":
		items := []any{}
		below, _ := s["items"].(map[string]any)
		for range g.IntN(4) {
			items = append(items, g.Value(below, depth-1))
		}
		return items
	case "string":
		return g.One("", "a", "ab", "abc", "b", "z", "1.2.3.4", "2020-01-01T00:00:00Z")
	case "integer":
		return g.One(int64(0), int64(1), int64(2), int64(4), int64(7), int64(10), int64(3000000000))
	case "number":
		return g.One(int64(0), int64(4), 2.5, 7.25)
	case "boolean":
		return g.Often(50)
	}
	if s[extension+"int-or-string"] == true {
		return g.One("a", int64(5))
	}
	return g.One("x", int64(1), nil, map[string]any{"y": []any{nil, "z"}})
}

// embedded gives an object the type and metadata of a resource, which are not always valid.
func (g *Generator) embedded(object map[string]any) {
	if g.Often(90) {
		object["apiVersion"] = g.One("v1", "v1", "example.com/v1", "", 1, "a/b/c")
	}
	if g.Often(90) {
		object["kind"] = g.One("Pod", "Pod", "Some", "", nil, "-")
	}
	if g.Often(80) {
		object["metadata"] = g.One(map[string]any{}, map[string]any{"name": "x", "labels": map[string]any{"a": "b"}},
			map[string]any{"name": "X", "odd": 1}, map[string]any{"labels": map[string]any{"a": 1}}, map[string]any{"creationTimestamp": nil}, nil, "x")
	}
}

// hasNull reports whether a value has a null.
func hasNull(value any) bool {
	raw, err := json.Marshal(value)
	return err != nil || strings.Contains(string(raw), "null")
}
