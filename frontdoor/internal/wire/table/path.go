package table

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"

	"k8s.io/client-go/util/jsonpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// path is the path of a value. Plain member names are looked up in the JSON; any other
// JSONPath, which custom types rarely use, is evaluated on the decoded object.
type path struct {
	names   []string
	complex *jsonpath.JSONPath
}

// parsePath parses a path. An invalid one finds no value; definitions with invalid paths
// are rejected before.
func parsePath(text string) path {
	if names, ok := plainNames(text); ok {
		return path{names: names}
	}
	parsed := jsonpath.New("column").AllowMissingKeys(true)
	if parsed.Parse("{"+text+"}") != nil {
		return path{names: []string{""}}
	}
	return path{complex: parsed}
}

// plainNames splits .spec.size; a dot within a name is escaped as \.
func plainNames(text string) ([]string, bool) {
	if text == "" {
		return nil, true
	}
	if text[0] != '.' || strings.ContainsAny(text, "[]*?@'\"()$ ") || strings.Contains(text, "..") {
		return nil, false
	}
	names := strings.Split(strings.ReplaceAll(text[1:], `\.`, "\x00"), ".")
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, "\x00", ".")
	}
	return names, true
}

func (p path) find(o *cell.Object) rawjson.Value {
	if p.complex != nil {
		return p.evaluate(o)
	}
	switch len(p.names) {
	case 0:
		return o.Value
	case 1:
		return o.Get(p.names[0])
	}
	switch name, rest := p.names[1], p.names[2:]; p.names[0] {
	case "metadata":
		return o.Metadata.Get(name, rest...)
	case "spec":
		return o.Spec.Get(name, rest...)
	case "status":
		return o.Status.Get(name, rest...)
	}
	return o.Get(p.names[0], p.names[1:]...)
}

// evaluate returns the first result of a complex path.
func (p path) evaluate(o *cell.Object) rawjson.Value {
	var decoded any
	if json.Unmarshal(o.Value, &decoded) != nil {
		return nil
	}
	results, err := p.complex.FindResults(decoded)
	if err != nil || len(results) == 0 || len(results[0]) == 0 || !results[0][0].CanInterface() {
		return nil
	}
	found, err := json.Marshal(results[0][0].Interface())
	if err != nil {
		return nil
	}
	return found
}

// shown returns the value of a cell in the type of the column; nil if it is of another
// type.
func shown(c kinds.Column, v rawjson.Value) any {
	if !v.Exists() || c.Absent != "" && string(v) == `""` {
		return orAbsent(c, nil)
	}
	switch c.Type {
	case "date":
		return cell.Since(v)
	case "integer":
		if n, err := strconv.ParseFloat(string(v), 64); err == nil {
			return int64(n)
		}
		return nil
	case "number":
		if _, err := strconv.ParseFloat(string(v), 64); err == nil {
			return json.RawMessage(v)
		}
		return nil
	case "boolean":
		if v.True() || string(v) == "false" {
			return json.RawMessage(v)
		}
		return nil
	}
	if v[0] == '"' {
		return json.RawMessage(v)
	}
	return v.Text()
}

// orAbsent replaces an absent value by the column's absent value.
func orAbsent(c kinds.Column, value any) any {
	if value != nil && value != "" || c.Absent == "" {
		return value
	}
	if c.Type != "string" && json.Valid([]byte(c.Absent)) {
		return json.RawMessage(c.Absent)
	}
	return c.Absent
}
