// Package seen knows the newest revision of each resource type that a client of the store has seen. Types may be in
// etcds with revisions of their own.
package seen

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services/resource"
)

// recent is how old a revision may be that a client knows of a type: much less than the history
// that the watch hub keeps.
const recent = 30 * time.Second

// Revisions are the revisions of all types. The zero value knows none. It is safe for concurrent use.
type Revisions struct {
	types sync.Map // from resource.GroupResource to *newest
}

type newest struct {
	revision atomic.Int64
	at       atomic.Int64 // when it was that of the present, since started; 0 for never
}

// started is read with a clock that does not jump.
var started = time.Now()

// Saw records a revision of a type in a response of the store.
func (r *Revisions) Saw(gr resource.GroupResource, revision int64) {
	seen := &r.of(gr).revision
	for before := seen.Load(); revision > before && !seen.CompareAndSwap(before, revision); {
		before = seen.Load()
	}
}

// SawNow records a revision of a type that was the newest at the time of the response.
func (r *Revisions) SawNow(gr resource.GroupResource, revision int64) {
	r.Saw(gr, revision)
	r.of(gr).at.Store(int64(time.Since(started)))
}

// Newest returns the newest revision of a type so far, 0 for none, and whether it is recent.
func (r *Revisions) Newest(gr resource.GroupResource) (revision int64, isRecent bool) {
	n := r.of(gr)
	at := time.Duration(n.at.Load())
	return n.revision.Load(), at > 0 && time.Since(started)-at <= recent
}

func (r *Revisions) of(gr resource.GroupResource) *newest {
	found, ok := r.types.Load(gr)
	if !ok {
		found, _ = r.types.LoadOrStore(gr, new(newest))
	}
	return found.(*newest)
}
