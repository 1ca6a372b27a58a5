package fields

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// hasKey reports whether an item of a list can be identified: by its keys, or as a scalar.
func (t *Type) hasKey(item any) bool {
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

// of returns the key's value in an item, or its default.
func (k key) of(item map[string]any) (value any, given bool) {
	if value, given = item[k.name]; given {
		return value, true
	}
	return k.initial, k.initial != nil
}

// name returns the name under which an item is recorded. The item must have a key.
func (t *Type) name(item any) string {
	var buffer [128]byte
	return string(t.appendName(buffer[:0], item))
}

// appendName appends the name of an item.
func (t *Type) appendName(b []byte, item any) []byte {
	if len(t.keys) == 0 {
		return appendPlain(append(b, "v:"...), item)
	}
	m := item.(map[string]any)
	b = append(b, "k:{"...)
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
	return append(b, '}')
}

// names returns the items of a list by name. ok is false when an item has no key, or the
// same as another.
func (t *Type) names(items []any) (names []string, byName map[string]any, ok bool) {
	names, byName = make([]string, len(items)), make(map[string]any, len(items))
	for i, item := range items {
		if !t.hasKey(item) {
			return nil, nil, false
		}
		names[i] = t.name(item)
		byName[names[i]] = item
	}
	return names, byName, len(byName) == len(items)
}

// keyed reports whether all items of a list have keys; if distinct is set, also whether
// these differ.
func (t *Type) keyed(items []any, distinct bool) bool {
	if distinct {
		_, _, ok := t.names(items)
		return ok
	}
	return !slices.ContainsFunc(items, func(item any) bool { return !t.hasKey(item) })
}

// maxExact bounds the integers that a float64 represents exactly.
const maxExact = 1 << 53

// plain reports whether every encoder writes a value in the same way.
func plain(value any) bool {
	switch v := value.(type) {
	case bool:
		return true
	case int64:
		return -maxExact < v && v < maxExact
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
