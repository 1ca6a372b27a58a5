package table

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// path is the path of a value: names of members.
type path []string

// parsePath parses a path. An invalid one finds no value.
func parsePath(text string) path {
	if names, ok := plainNames(text); ok {
		return names
	}
	return path{""}
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
	switch len(p) {
	case 0:
		return o.Value
	case 1:
		return o.Get(p[0])
	}
	switch name, rest := p[1], p[2:]; p[0] {
	case "metadata":
		return o.Metadata.Get(name, rest...)
	case "spec":
		return o.Spec.Get(name, rest...)
	case "status":
		return o.Status.Get(name, rest...)
	}
	return o.Get(p[0], p[1:]...)
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
