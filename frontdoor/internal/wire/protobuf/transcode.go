package protobuf

import (
	"bytes"
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// transcoder converts objects from JSON into messages, one after the other. It reads the
// text once: fields are appended to out in the order of the JSON, and reordered when their
// message is complete.
//
// Its methods return false for input that the published Go types would reject, or decode in
// a way that is not worth supporting here, such as duplicate fields.
type transcoder struct {
	in  rawjson.Cursor
	out []byte
	// found are the positions in out of the fields of incomplete messages.
	found   []span
	entries []entry // of incomplete maps
}

type span struct{ from, to int }

// transcode appends the message of an object.
func (t *transcoder) transcode(dst []byte, p *plan, object []byte) ([]byte, bool) {
	t.in, t.out, t.found, t.entries = rawjson.Value(object).Read(), t.out[:0], t.found[:0], t.entries[:0]
	ok := t.fields(p)
	if ok {
		dst = t.appendParts(dst, p.parts, t.found)
	}
	t.in = rawjson.Cursor{}
	clear(t.entries[:cap(t.entries)]) // they refer to the text
	return dst, ok
}

// message writes a nested message.
func (t *transcoder) message(tag string, p *plan) bool {
	start, first := len(t.out), len(t.found)
	if !t.fields(p) {
		return false
	}
	loose := len(t.out)
	t.out = t.appendParts(t.out, p.parts, t.found[first:])
	t.found = t.found[:first]
	t.out = closeMessage(t.out, start, loose, tag)
	return true
}

// fields appends the fields of an object to out in the order of the JSON, and their
// positions to found.
func (t *transcoder) fields(p *plan) bool {
	if !t.in.Open('{') {
		return false
	}
	first := len(t.found)
	t.found = slices.Grow(t.found, len(p.fields))[:first+len(p.fields)]
	clear(t.found[first:])
	for t.in.More('}') {
		key, ok := t.in.Key()
		if !ok {
			return false
		}
		i := p.byName.find(key[1 : len(key)-1])
		if i < 0 {
			if bytes.IndexByte(key, '\\') >= 0 {
				return false
			}
			t.in.Skip()
			continue
		}
		if t.found[first+i].to != 0 {
			return false
		}
		start := len(t.out)
		if !t.field(&p.fields[i]) {
			return false
		}
		if len(t.out) > start {
			t.found[first+i] = span{start, len(t.out)}
		}
	}
	return true
}

// appendParts appends the fields of a message in the order of the encoding.
func (t *transcoder) appendParts(dst []byte, parts []part, found []span) []byte {
	for i := range parts {
		p := &parts[i]
		if p.tag != "" {
			start := len(dst)
			dst = t.appendParts(dst, p.inlined, found)
			dst = closeMessage(dst, start, start, p.tag)
			continue
		}
		if at := found[p.field]; at.to != 0 {
			dst = append(dst, t.out[at.from:at.to]...)
		} else {
			dst = append(dst, p.absent...)
		}
	}
	return dst
}

// closeMessage moves a message at from to start, which is not after it, and inserts the tag
// and length before it.
func closeMessage(out []byte, start, from int, tag string) []byte {
	size := len(out) - from
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	end := start + len(tag) + n + size
	out = slices.Grow(out, len(tag)+n)
	copy(out[end-size:end], out[from:from+size])
	copy(out[start:end], tag)
	copy(out[start+len(tag):end], length[:n])
	return out[:end]
}

func (t *transcoder) field(f *field) bool {
	if t.in.Null() {
		return true
	}
	switch f.shape {
	case list:
		return t.list(f.tag, &f.value)
	case dictionary:
		return t.dictionary(f)
	}
	return t.value(f.tag, &f.value)
}

func (t *transcoder) list(tag string, v *value) bool {
	if !t.in.Open('[') {
		return false
	}
	for t.in.More(']') {
		if !t.orZero(tag, v) {
			return false
		}
	}
	return true
}

// orZero writes a value, or zero for null where a value is required.
func (t *transcoder) orZero(tag string, v *value) bool {
	if !t.in.Null() {
		return t.value(tag, v)
	}
	if v.zero != "" {
		t.out = append(append(t.out, tag...), v.zero...)
	}
	return true
}

// entry is the position in out of an entry of a map.
type entry struct {
	key []byte
	span
}

// The fields of an entry.
const (
	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2
)

// dictionary writes the entries of a map in the order of their keys, which JSON nearly
// always has already.
func (t *transcoder) dictionary(f *field) bool {
	if !t.in.Open('{') {
		return false
	}
	first, sorted := len(t.entries), true
	for t.in.More('}') {
		key, ok := t.in.TextKey()
		if !ok {
			return false
		}
		start := len(t.out)
		t.out = protowire.AppendVarint(append(t.out, f.keyTag...), uint64(len(key)))
		t.out = append(t.out, key...)
		if !t.orZero(f.valueTag, &f.value) {
			return false
		}
		t.out = closeMessage(t.out, start, start, f.tag)
		if last := len(t.entries) - 1; last >= first && bytes.Compare(t.entries[last].key, key) >= 0 {
			sorted = false
		}
		t.entries = append(t.entries, entry{key, span{start, len(t.out)}})
	}
	entries := t.entries[first:]
	t.entries = t.entries[:first]
	return sorted || t.sort(entries)
}

// sort sorts the entries at the end of out by key. It returns false for duplicate keys.
func (t *transcoder) sort(entries []entry) bool {
	start, end := entries[0].from, len(t.out)
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for i, e := range entries {
		if i > 0 && bytes.Equal(entries[i-1].key, e.key) {
			return false
		}
		t.out = append(t.out, t.out[e.from:e.to]...)
	}
	copy(t.out[start:], t.out[end:])
	t.out = t.out[:end]
	return true
}
