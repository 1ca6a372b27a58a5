package tree

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

const (
	// plainDepth is the maximum nesting that DecodePlain decodes.
	plainDepth = 200
	// MaxDepth is the maximum nesting of objects and lists in an accepted object. In
	// Kubernetes it is 10,000, the limit of the JSON decoder. No real type comes near
	// either, and the smaller limit bounds every cost that grows with depth times size.
	MaxDepth = 500
	// maxDecoded is the maximum nesting that Decode accepts: it leaves room for
	// managedFields, which nest as deeply as their object, and for lists of objects.
	maxDecoded = MaxDepth + 64
)

// Decode decodes an object's JSON; integers become int64. The error is a DepthError, or
// that of the library, which decodes what DecodePlain does not.
func Decode(raw []byte) (map[string]any, error) {
	if object, ok := DecodePlain(raw); ok {
		return object, nil
	}
	if err := CheckDepth(raw); err != nil {
		return nil, err
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, err
	}
	return object, nil
}

// DecodePlain is Decode for most JSON, several times faster than the library. ok is false
// for invalid JSON, duplicate members, invalid UTF-8 and nesting beyond plainDepth. The
// strings of the object share one copy of the text.
func DecodePlain(raw []byte) (object map[string]any, ok bool) {
	p := parser{text: string(raw), pending: pendings.Get().(*pending)}
	defer p.pending.free()
	p.space()
	if p.peek() != '{' {
		return nil, false
	}
	value, ok := p.object(0)
	p.space()
	return value, ok && p.at == len(p.text)
}

// DepthError is the error of JSON that is nested too deeply.
type DepthError struct{ Limit int }

func (e DepthError) Error() string {
	return fmt.Sprintf("exceeded the maximum nesting depth of %d", e.Limit)
}

// CheckDepth returns a DepthError for JSON that is nested more deeply than Decode accepts.
// It scans the text once, allocates nothing, and does not validate the JSON.
func CheckDepth(raw []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDecoded {
				return DepthError{MaxDepth}
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// CheckValue is CheckDepth for a value that was not decoded by Decode.
func CheckValue(value any) error { return checkValue(value, maxDecoded) }

func checkValue(value any, left int) error {
	switch value.(type) {
	case map[string]any, []any:
		if left == 0 {
			return DepthError{MaxDepth}
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if err := checkValue(item, left-1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkValue(item, left-1); err != nil {
				return err
			}
		}
	}
	return nil
}

type parser struct {
	text    string
	at      int
	pending *pending
	// inMetadata and inOwners are set in the metadata of the object and in its managedFields.
	inMetadata, inOwners bool
}

// peek returns the next character, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\n' || p.text[p.at] == '\t' || p.text[p.at] == '\r') {
		p.at++
	}
}

// take consumes a character and the space around it, and reports whether it was the next
// one.
func (p *parser) take(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *parser) value(depth int) (any, bool) {
	switch c := p.peek(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case '"':
		return p.string()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

func (p *parser) word(w string) bool {
	if len(p.text)-p.at < len(w) || p.text[p.at:p.at+len(w)] != w {
		return false
	}
	p.at += len(w)
	return true
}

func (p *parser) object(depth int) (map[string]any, bool) {
	if depth++; depth > plainDepth || !p.take('{') {
		return nil, false
	}
	if p.take('}') {
		return map[string]any{}, true
	}
	for first := len(p.pending.members); ; {
		name, ok := p.string()
		if !ok || !p.take(':') {
			return nil, false
		}
		value, ok := p.member(name, depth)
		if !ok {
			return nil, false
		}
		p.pending.members = append(p.pending.members, member{name, value})
		if p.take('}') {
			return p.pending.object(first)
		}
		if !p.take(',') {
			return nil, false
		}
	}
}

// member parses the value of a member of an object at a depth, which is 1 for the outermost one.
func (p *parser) member(name string, depth int) (any, bool) {
	switch depth {
	case 1:
		p.inMetadata = name == "metadata"
	case 2:
		p.inOwners = p.inMetadata && name == "managedFields"
	case 4: // of an item of a list
		if p.inOwners && name == "fieldsV1" {
			return p.fieldSet(depth)
		}
	}
	return p.value(depth)
}

// object returns the members from an index, unless two have the same name.
func (p *pending) object(first int) (map[string]any, bool) {
	members := p.members[first:]
	object := make(map[string]any, len(members))
	for i := range members {
		object[members[i].name] = members[i].value
	}
	p.members = p.members[:first]
	return object, len(object) == len(members)
}

func (p *parser) list(depth int) ([]any, bool) {
	if depth++; depth > plainDepth || !p.take('[') {
		return nil, false
	}
	if p.take(']') {
		return []any{}, true
	}
	for first := len(p.pending.items); ; {
		value, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		p.pending.items = append(p.pending.items, value)
		if p.take(']') {
			list := append(make([]any, 0, len(p.pending.items)-first), p.pending.items[first:]...)
			p.pending.items = p.pending.items[:first]
			return list, true
		}
		if !p.take(',') {
			return nil, false
		}
	}
}

// string parses a string.
func (p *parser) string() (string, bool) {
	if p.peek() != '"' {
		return "", false
	}
	start, escaped, ascii := p.at+1, false, true
	for i := start; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			s := p.text[start:i]
			p.at = i + 1
			if !ascii && !utf8.ValidString(s) {
				return "", false
			}
			if escaped {
				return unescaped(s)
			}
			return s, true
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// unescaped returns the text of a string that is given without its quotes. The library decodes
// those with escapes that names of managed fields do not have.
func unescaped(s string) (string, bool) {
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' {
			i++ // something follows, as the string has an end
			switch c = s[i]; c {
			case '"', '\\', '/':
			case 'n':
				c = '\n'
			default:
				var decoded string
				err := json.Unmarshal([]byte(`"`+s+`"`), &decoded)
				return decoded, err == nil
			}
		}
		text = append(text, c)
	}
	return string(text), true
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

func (p *parser) number() (any, bool) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if !p.digits() {
		return nil, false
	}
	whole := true
	if p.peek() == '.' {
		p.at++
		if whole = false; !p.digits() {
			return nil, false
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if whole = false; !p.digits() {
			return nil, false
		}
	}
	written := p.text[start:p.at]
	if whole {
		if i, err := strconv.ParseInt(written, 10, 64); err == nil {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(written, 64)
	return f, err == nil
}
