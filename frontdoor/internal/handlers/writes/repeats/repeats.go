// Package repeats remembers the outcomes of requests that changed nothing, for package writes,
// which explains when they are the same again.
package repeats

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
)

// maxOutcomes bounds the number of outcomes, and MaxBytes the size of the object of each.
const (
	maxOutcomes = 1024
	MaxBytes    = 16 << 10
)

// Digest identifies the content of a request.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a body and of what else determines the result.
func DigestOf(body []byte, parts ...string) (d Digest) {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:])
		_, _ = io.WriteString(h, part)
	}
	_, _ = h.Write(body)
	return Digest(h.Sum(d[:0]))
}

// Outcome is the outcome of a request that changed nothing.
type Outcome struct {
	Revision         int64
	Engine           *typesystem.Engine
	Content          services.Content
	Mutated, Checked []byte // the objects that mutating and validating admission received
	Owners           []services.OwnerType
	Warned           []string
}

// Outcomes are outcomes by digest. The zero value has none. They are safe for concurrent use.
type Outcomes struct {
	mu sync.Mutex
	of map[Digest]Outcome
}

// Recall returns what Remember has stored.
func (s *Outcomes) Recall(d Digest) (Outcome, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.of[d]
	return o, ok
}

// Remember stores an outcome, in the place of any other if there are too many.
func (s *Outcomes) Remember(d Digest, o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[Digest]Outcome)
	}
	for old := range s.of { // any one: a repeated request is stored again
		if len(s.of) < maxOutcomes {
			break
		}
		delete(s.of, old)
	}
	s.of[d] = o
}

// Len returns the number of outcomes.
func (s *Outcomes) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}
