package resource

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
)

// appendHeader appends the header line as encoding/json writes it. ok is false for text that
// has to be escaped, and for the trace of a write.
func appendHeader(b []byte, h *header, write string) (_ []byte, ok bool) {
	if len(h.Trace) > 0 || !plain(h.UID) || !plain(write) {
		return b, false
	}
	b = append(append(append(b, `{"uid":"`...), h.UID...), '"')
	for _, part := range []struct {
		name   string
		values map[string]string
	}{{`,"labels":{`, h.Labels}, {`,"fields":{`, h.Fields}} {
		if b, ok = appendStrings(b, part.name, part.values); !ok {
			return b, false
		}
	}
	b = strconv.AppendInt(append(b, `,"at":`...), int64(h.At), 10)
	if write != "" {
		b = append(append(append(b, `,"w":"`...), write...), '"')
	}
	return append(b, '}'), true
}

func appendStrings(b []byte, begin string, values map[string]string) (_ []byte, ok bool) {
	if len(values) == 0 {
		return b, true
	}
	var few [16]string
	names := few[:0]
	for name, value := range values {
		if !plain(name) || !plain(value) {
			return b, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, begin...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":"`...)
		b = append(append(b, values[name]...), '"')
	}
	return append(b, '}'), true
}

// plain reports whether a text is its own form in JSON, as encoding/json writes it.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decodeHeader decodes a header line. Those of appendHeader cost a fraction of what
// encoding/json takes, which reads all others.
func decodeHeader(line []byte) (h header, err error) {
	s := scanner{text: unsafe.String(unsafe.SliceData(line), len(line))} // of which copies are kept
	if s.header(&h); !s.failed && s.text == "" {
		return h, nil
	}
	var other header
	err = json.Unmarshal(line, &other)
	return other, err
}

// maxShared is the length of the longest text of labels or fields that objects share.
const maxShared = 512

// sharedValues are labels or fields with their text. They are immutable.
type sharedValues struct {
	text   string
	values map[string]string
}

// shared has labels and fields that were decoded recently, each at a place that follows from its
// text: many objects have the same ones.
var (
	shared [1 << 12]atomic.Pointer[sharedValues]
	seed   = maphash.MakeSeed()
)

// scanner reads the start of a text. It has failed if that was something else.
type scanner struct {
	text   string
	failed bool
}

func (s *scanner) header(h *header) {
	s.expect(`{"uid":`)
	h.UID = strings.Clone(s.string())
	h.Labels, h.Fields = s.strings(`,"labels":{`), s.strings(`,"fields":{`)
	s.expect(`,"at":`)
	h.At = s.number()
	if s.take(`,"w":`) {
		_ = s.string()
	}
	s.expect(`}`)
}

func (s *scanner) take(prefix string) bool {
	if len(s.text) < len(prefix) || s.text[:len(prefix)] != prefix {
		return false
	}
	s.text = s.text[len(prefix):]
	return true
}

func (s *scanner) expect(prefix string) { s.failed = !s.take(prefix) || s.failed }

func (s *scanner) string() string {
	if s.expect(`"`); s.failed {
		return ""
	}
	for i := 0; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			value := s.text[:i]
			s.text = s.text[i+1:]
			return value
		case c < ' ', c == '\\', c >= utf8.RuneSelf:
			s.failed = true
			return ""
		}
	}
	s.failed = true
	return ""
}

// strings returns the texts of an object, whose begin is given. Objects with the same text share it.
func (s *scanner) strings(begin string) map[string]string {
	if !s.take(begin) {
		return nil
	}
	text := s.text
	for !s.failed && !s.take(`}`) {
		_ = s.string()
		if !s.take(`:`) && !s.take(`,`) && !strings.HasPrefix(s.text, `}`) {
			s.failed = true
		}
	}
	if s.failed {
		return nil
	}
	text = text[:len(text)-len(s.text)]
	place := &shared[maphash.String(seed, text)%uint64(len(shared))]
	if known := place.Load(); known != nil && known.text == text {
		return known.values
	}
	text = strings.Clone(text)
	values := (&scanner{text: text}).members()
	if s.failed = values == nil; !s.failed && len(text) <= maxShared {
		place.Store(&sharedValues{text, values})
	}
	return values
}

// members returns the members of an object after its first brace; nil for an invalid one.
func (s *scanner) members() map[string]string {
	values := map[string]string{}
	for n := 1; !s.failed; n++ {
		name := s.string()
		s.expect(`:`)
		values[name] = s.string()
		s.failed = s.failed || len(values) != n
		if s.take(`}`) && !s.failed {
			return values
		}
		s.expect(`,`)
	}
	return nil
}

func (s *scanner) number() int {
	i := 0
	for i < len(s.text) && '0' <= s.text[i] && s.text[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(s.text[:i])
	s.failed = s.failed || err != nil || i > 1 && s.text[0] == '0'
	s.text = s.text[i:]
	return n
}
