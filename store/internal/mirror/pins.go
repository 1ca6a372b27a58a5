package mirror

import "time"

const (
	defaultPinAge = 5 * time.Minute
	// defaultPinBytes is enough for lists that take some minutes under normal load. Beyond
	// it pages come from etcd's history, so that many versions of large objects are not
	// kept in memory.
	defaultPinBytes = 64 << 20
	// maxPins bounds the search for a revision.
	maxPins = 256
)

// pins keeps the snapshots of lists, oldest first, so that their following pages come from
// memory and show the same state.
//
// A snapshot references the objects that were current when it was taken. All snapshots
// together retain at most the bytes that were replaced since the oldest, which are
// bounded. The state of dropped snapshots can still be read from etcd's history.
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

// trim drops snapshots that exceed the age, the bytes or maxPins.
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
