package fields

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// identifies reports whether an item of a list can be told apart from others.
func (t *Type) identifies(item any) bool {
	if len(t.keys) == 0 {
		return plain(item)
	}
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	some := false
	for _, k := range t.keys {
		value, given := k.of(m)
		if given && !plain(value) {
			return false
		}
		some = some || given
	}
	return some
}

// of returns the key's value in an item, or its initial one.
func (k key) of(item map[string]any) (value any, given bool) {
	if value, given = item[k.name]; given {
		return value, true
	}
	return k.initial, k.initial != nil
}

// name returns the name under which an item is recorded. The item must be one that
// identifies.
func (t *Type) name(item any) string {
	var buffer [128]byte
	if len(t.keys) == 0 {
		return string(appendPlain(append(buffer[:0], "v:"...), item))
	}
	b, m := append(buffer[:0], "k:{"...), item.(map[string]any)
	for _, k := range t.keys {
		value, given := k.of(m)
		if !given {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), k.name...), '"', ':')
		b = appendPlain(b, value)
	}
	return string(append(b, '}'))
}

// names returns the items of a list by name; not ok when an item has none, or has
// that of another.
func (t *Type) names(items []any) (names []string, byName map[string]any, ok bool) {
	names, byName = make([]string, len(items)), make(map[string]any, len(items))
	for i, item := range items {
		if !t.identifies(item) {
			return nil, nil, false
		}
		names[i] = t.name(item)
		byName[names[i]] = item
	}
	return names, byName, len(byName) == len(items)
}

// tellApart reports whether all items of a list can be told apart from others; when
// they must be distinct, also from each other.
func (t *Type) tellApart(items []any, distinct bool) bool {
	if distinct {
		_, _, ok := t.names(items)
		return ok
	}
	return !slices.ContainsFunc(items, func(item any) bool { return !t.identifies(item) })
}

// exact is the largest whole number that a float holds exactly.
const exact = 1 << 53

// plain reports whether a value is written the same by every encoder.
func plain(value any) bool {
	switch v := value.(type) {
	case bool:
		return true
	case int64:
		return -exact < v && v < exact
	case string:
		for i := 0; i < len(v); i++ {
			if c := v[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf || c == 0x7f {
				return false
			}
		}
		return true
	}
	return false
}

func appendPlain(b []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return append(append(append(b, '"'), v...), '"')
	}
	return b
}
