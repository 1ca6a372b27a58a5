package resource

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
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
	s := scanner{text: string(line)}
	if s.header(&h); !s.failed && s.text == "" {
		return h, nil
	}
	var other header
	err = json.Unmarshal(line, &other)
	return other, err
}

// scanner reads the start of a text. It has failed if that was something else.
type scanner struct {
	text   string
	failed bool
}

func (s *scanner) header(h *header) {
	s.expect(`{"uid":`)
	h.UID = s.string()
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

func (s *scanner) strings(begin string) map[string]string {
	if !s.take(begin) {
		return nil
	}
	values := map[string]string{}
	for n := 1; !s.failed; n++ {
		name := s.string()
		s.expect(`:`)
		values[name] = s.string()
		s.failed = s.failed || len(values) != n
		if s.take(`}`) {
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
