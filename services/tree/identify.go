package tree

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Identity is what the JSON of an object says about which object it is. Absent texts are empty.
type Identity struct {
	APIVersion, Kind, Name, Namespace string
	// Metadata is the offset of MetadataOffset; 0 if there is no metadata object.
	Metadata int
}

var errNotWhole = errors.New("it is not one whole JSON object")

// identifyDepth bounds the nesting, as the decoder of encoding/json does: far more than any object that is accepted.
const identifyDepth = 10_000

// Identify checks that a text is one JSON object and nothing else, and returns its identity. It accepts what
// encoding/json accepts, in one pass without a tree.
func Identify(raw []byte) (Identity, error) {
	s := scanner{raw: raw}
	s.space()
	if s.peek() != '{' || !s.members(1, identityOfObject) {
		return Identity{}, errNotWhole
	}
	if s.space(); s.at != len(raw) {
		return Identity{}, errNotWhole
	}
	return s.id, nil
}

// scanner reads JSON from a position.
type scanner struct {
	raw []byte
	at  int
	id  Identity
}

// part is a part of an object whose members identify it.
type part uint8

const (
	noIdentity part = iota
	identityOfObject
	identityOfMetadata
)

// into returns where the text of a member belongs, nil if it does not identify the object.
func (s *scanner) into(of part, key []byte) *string {
	switch {
	case of == identityOfObject && string(key) == "apiVersion":
		return &s.id.APIVersion
	case of == identityOfObject && string(key) == "kind":
		return &s.id.Kind
	case of == identityOfMetadata && string(key) == "name":
		return &s.id.Name
	case of == identityOfMetadata && string(key) == "namespace":
		return &s.id.Namespace
	}
	return nil
}

func (s *scanner) peek() byte {
	if s.at < len(s.raw) {
		return s.raw[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take skips a character if it is the next one.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at >= len(s.raw) {
		return false
	}
	s.at++
	return true
}

// value skips a value. Each of these functions returns false for what is not JSON.
func (s *scanner) value(depth int) bool {
	s.space()
	switch c := s.peek(); {
	case c == '"':
		_, ok := s.text()
		return ok
	case c == '{':
		return s.members(depth+1, noIdentity)
	case c == '[':
		return s.items(depth + 1)
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.number()
}

// members skips an object.
func (s *scanner) members(depth int, of part) bool {
	if s.at++; depth > identifyDepth {
		return false
	}
	if s.space(); s.take('}') {
		return true
	}
	for {
		s.space()
		key, ok := s.text()
		if s.space(); !ok || !s.take(':') || !s.member(depth, of, key) {
			return false
		}
		if s.space(); s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// member skips the value of a member, and keeps it if it identifies the object.
func (s *scanner) member(depth int, of part, key []byte) bool {
	s.space()
	if of == identityOfObject && string(key) == "metadata" && s.peek() == '{' {
		if s.id.Metadata == 0 {
			s.id.Metadata = s.at + 1
		}
		return s.members(depth+1, identityOfMetadata)
	}
	into := s.into(of, key)
	if into == nil || s.peek() != '"' {
		return s.value(depth)
	}
	text, ok := s.text()
	if bytes.IndexByte(text, '\\') < 0 {
		*into = string(text)
		return ok
	}
	return ok && json.Unmarshal(append(append([]byte{'"'}, text...), '"'), into) == nil
}

// items skips a list.
func (s *scanner) items(depth int) bool {
	if s.at++; depth > identifyDepth {
		return false
	}
	if s.space(); s.take(']') {
		return true
	}
	for s.value(depth) {
		if s.space(); s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
	return false
}

// text skips a string and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	raw, from := s.raw, s.at
	for at := from; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == '"':
			s.at = at + 1
			return raw[from:at], true
		case c == '\\':
			if s.at = at + 1; !s.escaped() {
				return nil, false
			}
			at = s.at
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// escaped reports whether what follows a backslash is valid, and skips all of it but the last character.
func (s *scanner) escaped() bool {
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.at++
			if c := s.peek() | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
		return true
	}
	return false
}

func (s *scanner) word(text string) bool {
	if !bytes.HasPrefix(s.raw[s.at:], []byte(text)) {
		return false
	}
	s.at += len(text)
	return true
}

func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.peek()|0x20 != 'e' {
		return true
	}
	if s.at++; !s.take('+') {
		s.take('-')
	}
	return s.digits()
}

// digits skips at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > from
}
