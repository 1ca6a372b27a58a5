package writes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
)

const (
	// mostRepeats and largestRepeat bound what is remembered, in number and in bytes
	// of an object.
	mostRepeats   = 1024
	largestRepeat = 16 << 10
)

// digest stands for all that a client has sent.
type digest [sha256.Size]byte

// outcome is what became of a request that changed nothing: on the same revision of
// the object, and with the same types, it changes nothing again. Admission is asked
// each time, so what it was shown is kept.
type outcome struct {
	revision         int64
	engine           *typesystem.Engine
	mutated, checked []byte // the objects that the two halves of admission were shown
	warnings         []string
}

// repeats remembers requests that changed nothing. Those who keep an object as they
// want it send the same again and again.
type repeats struct {
	mu sync.Mutex
	of map[digest]outcome
}

// digest returns what the request is remembered by.
func (x *writing) digest() (d digest) {
	h := sha256.New()
	for _, part := range []string{x.Verb, x.Key().Path(), x.Type.APIVersion(), x.SubresourceName(), x.mediaType, x.URL.RawQuery, x.fieldManager(), x.User.Name} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:])
		_, _ = io.WriteString(h, part)
	}
	_, _ = h.Write(x.raw)
	return digest(h.Sum(d[:0]))
}

// repeat answers a request that is known to change nothing, if admission agrees.
func (h *Handlers) repeat(ctx context.Context, c *change) (done bool, err error) {
	h.repeats.mu.Lock()
	o, ok := h.repeats.of[c.sent]
	h.repeats.mu.Unlock()
	if !ok || !c.exists() || c.options.DryRun || o.revision != c.current.Revision || o.engine != c.Engine {
		return false, nil
	}
	c.admission.Warn(o.warnings...)
	c.nextRaw = o.mutated
	review, err := c.review(ctx)
	if err != nil {
		return false, err
	}
	if changed, err := review.Mutate(ctx, c.admitted()); err != nil || changed != nil {
		return false, err
	}
	c.nextRaw = o.checked
	err = review.Validate(ctx, c.admitted())
	return err == nil, err
}

// remember keeps a request that has turned out to change nothing.
func (h *Handlers) remember(c *change) {
	if c.shown == nil || !c.admission.Asks() || len(c.nextRaw) > largestRepeat {
		return
	}
	o := *c.shown
	o.revision, o.checked = c.current.Revision, c.nextRaw
	r := &h.repeats
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[digest]outcome)
	}
	for old := range r.of { // whichever: who comes again is remembered again
		if len(r.of) < mostRepeats {
			break
		}
		delete(r.of, old)
	}
	r.of[c.sent] = o
}
