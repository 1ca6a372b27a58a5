package mirror

import "time"

const (
	defaultPinAge = 5 * time.Minute
	// defaultPinBytes keeps the pages of a list of some minutes in memory while objects
	// change as usual. Beyond it they come from etcd's history: a burst of large objects
	// must not be held several times over.
	defaultPinBytes = 64 << 20
	// maxPins bounds the search for a revision.
	maxPins = 256
)

// pins keeps the snapshots from which lists were served, oldest first, so that their
// following pages come from memory and show the same state.
//
// A snapshot keeps alive the objects that were current when it was taken. All of them
// together cannot keep more than what was replaced since the oldest, so that sum is the
// bound. Dropped snapshots can still be read from etcd's history.
type pins struct {
	age   time.Duration
	bytes int64
	held  []pin
}

type pin struct {
	snapshot *Snapshot
	since    time.Time
}

func newPins(age time.Duration, bytes int64) pins {
	if age == 0 {
		age = defaultPinAge
	}
	if bytes == 0 {
		bytes = defaultPinBytes
	}
	return pins{age: age, bytes: bytes}
}

// add keeps a snapshot; replaced is the mirror's total of replaced bytes.
func (p *pins) add(s *Snapshot, now time.Time, replaced int64) {
	if _, ok := p.find(s.Revision, now); ok {
		return
	}
	p.held = append(p.held, pin{s, now})
	p.trim(now, replaced)
}

func (p *pins) find(revision int64, now time.Time) (*Snapshot, bool) {
	for i := len(p.held) - 1; i >= 0 && now.Sub(p.held[i].since) <= p.age; i-- {
		if p.held[i].snapshot.holds(revision) {
			return p.held[i].snapshot, true
		}
	}
	return nil, false
}

// trim drops snapshots that exceed the age or the bytes.
func (p *pins) trim(now time.Time, replaced int64) {
	drop := 0
	for _, held := range p.held {
		if len(p.held)-drop <= maxPins && now.Sub(held.since) <= p.age && replaced-held.snapshot.replaced <= p.bytes {
			break
		}
		drop++
	}
	if drop > 0 {
		p.held = append([]pin(nil), p.held[drop:]...)
	}
}
