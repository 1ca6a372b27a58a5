package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
)

// Identity is what the JSON of an object says about which object it is. Absent texts are empty.
type Identity struct {
	APIVersion, Kind, Name, Namespace string
	// Metadata is the offset of MetadataOffset; 0 if there is no metadata object, or an empty one.
	Metadata int
}

var errNotWhole = errors.New("it is not one whole JSON object")

// identifyDepth bounds the nesting, as the decoder of encoding/json does: far more than any object that is accepted.
const identifyDepth = 10_000

// Identify checks that a text is one JSON object and nothing else, and returns its identity. It accepts what
// encoding/json accepts, in one pass without a tree.
func Identify(raw []byte) (Identity, error) {
	s := scanner{raw: raw}
	if s.peek() != '{' || !s.members(identityOfObject) {
		return Identity{}, errNotWhole
	}
	if s.peek(); s.at != len(raw) {
		return Identity{}, errNotWhole
	}
	return s.id, nil
}

// scanner reads JSON from a position.
type scanner struct {
	raw  []byte
	at   int
	id   Identity
	seen bool // there was metadata
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

// peek returns the next character that is not a space; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.raw); s.at++ {
		if c := s.raw[s.at]; c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// take skips a character if it is the next one that is not a space.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.at == len(s.raw) {
		return false
	}
	s.at++
	return true
}

// members skips an object that identifies something. Each of these functions returns false for what is not JSON.
func (s *scanner) members(of part) bool {
	s.at++
	if s.take('}') {
		return true
	}
	for {
		if s.peek() != '"' {
			return false
		}
		key, ok := s.text()
		if !ok || !s.take(':') || !s.member(of, key) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// member skips the value of a member, and keeps it if it identifies the object.
func (s *scanner) member(of part, key []byte) bool {
	first := s.peek()
	if of == identityOfObject && first == '{' && string(key) == "metadata" {
		inside, decides := s.at+1, !s.seen
		s.seen = true
		ok := s.members(identityOfMetadata)
		if ok && decides && len(bytes.TrimSpace(s.raw[inside:s.at-1])) > 0 {
			s.id.Metadata = inside
		}
		return ok
	}
	into := s.into(of, key)
	if into == nil || first != '"' {
		return s.value()
	}
	text, ok := s.text()
	if bytes.IndexByte(text, '\\') < 0 {
		*into = string(text)
		return ok
	}
	return ok && json.Unmarshal(append(append([]byte{'"'}, text...), '"'), into) == nil
}

// value skips a value, whatever it contains.
func (s *scanner) value() bool {
	var few [32]byte
	open := few[:0] // the characters that close what is open
	for {
		switch c := s.peek(); c {
		case '{', '[':
			if len(open) == identifyDepth {
				return false
			}
			s.at++
			closing := c + 2 // of both
			if !s.take(closing) {
				if open = append(open, closing); c == '{' && !s.key() {
					return false
				}
				continue
			}
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
		default:
			if !s.scalar(c) {
				return false
			}
		}
		for { // a value has ended
			if len(open) == 0 {
				return true
			}
			closing := open[len(open)-1]
			if s.take(',') {
				if closing == '}' && !s.key() {
					return false
				}
				break
			}
			if !s.take(closing) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
}

// key skips a key and the colon after it.
func (s *scanner) key() bool {
	if s.peek() != '"' {
		return false
	}
	_, ok := s.text()
	return ok && s.take(':')
}

// text skips the string that begins here and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	s.at++
	raw, from := s.raw, s.at
	for at := from; at < len(raw); at++ {
		for at+8 <= len(raw) {
			found := special(binary.LittleEndian.Uint64(raw[at:]))
			if found != 0 {
				at += bits.TrailingZeros64(found) / 8
				break
			}
			at += 8
		}
		if at == len(raw) {
			break
		}
		switch c := raw[at]; {
		case c == '"':
			s.at = at + 1
			return raw[from:at], true
		case c == '\\':
			n := escaped(raw[at+1:])
			if n == 0 {
				return nil, false
			}
			at += n
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// special returns bits for the bytes of eight that are a quote, a backslash or a control character: the lowest bit is
// the high bit of the first of them; 0 if there is none.
func special(eight uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	below := func(x, n uint64) uint64 { return (x - n*ones) &^ x } // the high bit of bytes that are less than n
	return (below(eight, ' ') | below(eight^'"'*ones, 1) | below(eight^'\\'*ones, 1)) & high
}

// escaped returns the length of what follows a backslash; 0 if it is not valid.
func escaped(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(rest) < 5 {
			return 0
		}
		for _, c := range rest[1:5] {
			if c |= 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}

// scalar skips what is no string, object or list and begins with a character.
func (s *scanner) scalar(first byte) bool {
	switch first {
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) word(text string) bool {
	if !bytes.HasPrefix(s.raw[s.at:], []byte(text)) {
		return false
	}
	s.at += len(text)
	return true
}

func (s *scanner) number() bool {
	s.skip('-', '-')
	if !s.skip('0', '0') && !s.digits() {
		return false
	}
	if s.skip('.', '.') && !s.digits() {
		return false
	}
	if !s.skip('e', 'E') {
		return true
	}
	s.skip('+', '-')
	return s.digits()
}

// skip skips one of two characters if it is next.
func (s *scanner) skip(a, b byte) bool {
	if s.at == len(s.raw) || s.raw[s.at] != a && s.raw[s.at] != b {
		return false
	}
	s.at++
	return true
}

// digits skips at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.raw) && s.raw[s.at] >= '0' && s.raw[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
