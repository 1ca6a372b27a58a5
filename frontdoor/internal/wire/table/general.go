package table

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// generalCells compute a cell from the value at a path; for "" the column's absent value is
// shown.
var generalCells = map[string]func(rawjson.Value) any{
	kinds.CellAge:         ageOf,
	kinds.CellCount:       func(v rawjson.Value) any { return int64(v.Len()) },
	kinds.CellNames:       func(v rawjson.Value) any { return joinMember(v, "name") },
	kinds.CellImages:      func(v rawjson.Value) any { return joinMember(v, "image") },
	kinds.CellText:        func(v rawjson.Value) any { return v.Text() },
	kinds.CellJoin:        func(v rawjson.Value) any { return cell.Join(v, ",", rawjson.Value.Text) },
	kinds.CellReference:   reference,
	kinds.CellAccessModes: accessModes,
	kinds.CellLabels:      func(v rawjson.Value) any { return cmp.Or(labels(v), cell.None) },
	kinds.CellSelector:    func(v rawjson.Value) any { return cmp.Or(selector(v), cell.None) },
	kinds.CellBool:        func(v rawjson.Value) any { return json.RawMessage(strconv.FormatBool(v.True())) },
	kinds.CellYesNo:       yesNo,
	kinds.CellNumber:      number,
}

// ageOf returns the time of a timestamp; nil if it is absent.
func ageOf(v rawjson.Value) any {
	if !v.Exists() {
		return nil
	}
	return cell.Since(v)
}

// yesNo returns True or False, the form of conditions; nil if the value is absent.
func yesNo(v rawjson.Value) any {
	switch {
	case !v.Exists():
		return nil
	case v.True():
		return "True"
	}
	return "False"
}

// number returns a number in a column of any type; 0 if it is absent.
func number(v rawjson.Value) any {
	if _, err := strconv.ParseFloat(string(v), 64); err != nil {
		return int64(0)
	}
	return json.RawMessage(v)
}

func joinMember(list rawjson.Value, member string) string {
	return cell.Join(list, ",", func(item rawjson.Value) string { return item.Get(member).Text() })
}

func reference(v rawjson.Value) any {
	if !v.Exists() {
		return cell.None
	}
	kind := v.Get("kind").String()
	if group := v.Get("apiGroup").String(); group != "" {
		kind += "." + group
	}
	return kind + "/" + v.Get("name").String()
}

// shortModes are the abbreviations of access modes in the order of the cell.
var shortModes = [...]struct{ mode, short string }{{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}}

func accessModes(v rawjson.Value) any {
	given, short := cell.Texts(v), []string{}
	for _, m := range shortModes {
		if slices.Contains(given, m.mode) {
			short = append(short, m.short)
		}
	}
	return strings.Join(short, ",")
}

// labels returns a map as k=v,k=v, sorted by key.
func labels(v rawjson.Value) string {
	var pairs []string
	for key, value := range v.Members() {
		pairs = append(pairs, key+"="+value.Text())
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// selector returns a label selector, or the plain map of older types, as a string.
func selector(v rawjson.Value) string {
	equal, expressions := v.Get("matchLabels"), v.Get("matchExpressions")
	if !isObject(equal) && !isArray(expressions) {
		return labels(v)
	}
	parts := []string{}
	if text := labels(equal); text != "" {
		parts = append(parts, text)
	}
	for e := range expressions.Items() {
		key, values := e.Get("key").String(), cell.Join(e.Get("values"), ",", rawjson.Value.String)
		switch e.Get("operator").String() {
		case "In":
			parts = append(parts, key+" in ("+values+")")
		case "NotIn":
			parts = append(parts, key+" notin ("+values+")")
		case "Exists":
			parts = append(parts, key)
		case "DoesNotExist":
			parts = append(parts, "!"+key)
		}
	}
	return strings.Join(parts, ",")
}

func isObject(v rawjson.Value) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v rawjson.Value) bool  { return len(v) > 0 && v[0] == '[' }
