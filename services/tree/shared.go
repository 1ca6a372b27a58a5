package tree

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// shared are objects that many others have in common, with their JSON: the fieldsV1 of
// managedFields and parts of it, which nobody modifies in place. Decoding finds them by their
// text, encoding by their identity.
var shared = common{seed: maphash.MakeSeed()}

const (
	// maxShared bounds the JSON of one shared object, in bytes.
	maxShared = 16 << 10
	// maxAllShared bounds the JSON of all objects of a generation, of which there are two. As
	// maps, they take about ten times as much.
	maxAllShared = 512 << 10
)

// common is a cache that forgets what has not been used since a generation began.
type common struct {
	seed maphash.Seed
	seen [1 << 10]atomic.Uint64 // hashes of texts that occurred once

	mu         sync.RWMutex
	young, old generation
}

type generation struct {
	byText   map[string]*sharedObject
	byObject map[uintptr]*sharedObject // their addresses; they stay alive as long as these
	size     int
}

// sharedObject is immutable.
type sharedObject struct {
	text   string
	object map[string]any
}

// Share makes a part of managedFields known to encoders, which then copy its JSON. Nobody may
// modify it afterwards.
func Share(object map[string]any) {
	p := pendings.Get().(*pending)
	defer p.free()
	p.owners = true
	var err error
	if p.text, err = p.appendObject(p.text[:0], object, plainDepth); err == nil && len(p.text) <= maxShared {
		shared.put(&sharedObject{string(p.text), object})
	}
}

// decoded returns the object with a text; nil if it is not shared.
func (c *common) decoded(text string) map[string]any {
	c.mu.RLock()
	found, old := c.young.byText[text], false
	if found == nil {
		found = c.old.byText[text]
		old = found != nil
	}
	c.mu.RUnlock()
	switch {
	case found == nil:
		return nil
	case old:
		c.put(found)
	}
	return found.object
}

// encoded returns the text of an object; "" if it is not shared.
func (c *common) encoded(object map[string]any) string {
	at := reflect.ValueOf(object).Pointer()
	c.mu.RLock()
	found, old := c.young.byObject[at], false
	if found == nil {
		found = c.old.byObject[at]
		old = found != nil
	}
	c.mu.RUnlock()
	switch {
	case found == nil:
		return ""
	case old:
		c.put(found)
	}
	return found.text
}

// put adds an object to the young generation.
func (c *common) put(o *sharedObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := reflect.ValueOf(o.object).Pointer()
	if c.young.byObject[at] != nil {
		return
	}
	if c.young.byText == nil || c.young.size+len(o.text) > maxAllShared {
		c.old, c.young = c.young, generation{byText: map[string]*sharedObject{}, byObject: map[uintptr]*sharedObject{}}
	}
	c.young.byText[o.text], c.young.byObject[at] = o, o
	c.young.size += len(o.text)
}

// repeated reports whether a text has occurred before, as far as it is remembered.
func (c *common) repeated(text string) bool {
	h := maphash.String(c.seed, text)
	return c.seen[h%uint64(len(c.seen))].Swap(h) == h
}

// share decodes a text that has occurred before once more, without the rest of the text that
// it is a part of. Other forms of the JSON than that of Encode are not shared.
func (c *common) share(text string) {
	text = strings.Clone(text)
	object, ok := DecodePlain([]byte(text))
	if !ok {
		return
	}
	if encoded, err := Encode(object); err == nil && string(encoded) == text {
		c.put(&sharedObject{text, object})
	}
}

// fieldSet parses a fieldsV1 of managedFields, whose result is immutable.
func (p *parser) fieldSet(depth int) (any, bool) {
	end := endOfObject(p.text, p.at)
	if end < 0 {
		return p.value(depth)
	}
	text := p.text[p.at:end]
	if object := shared.decoded(text); object != nil {
		p.at = end
		return object, true
	}
	value, ok := p.value(depth)
	if ok && p.at == end && shared.repeated(text) {
		shared.share(text)
	}
	return value, ok
}

// endOfObject returns the end of the object that begins at an offset; a negative number if none does, or one
// that is longer than what is shared.
func endOfObject(text string, from int) int {
	text = text[:min(len(text), from+maxShared)]
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
		if depth <= 0 {
			return min(i+1, len(text))
		}
	}
	return -1
}
