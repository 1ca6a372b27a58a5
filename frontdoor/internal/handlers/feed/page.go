package feed

import (
	"time"

	"github.com/portico-platform/portico/services"
)

// A watcher that has fallen behind the ring holds a page of history of its own until its client has taken it,
// and there may be many such watchers whose clients do not read.
const (
	// leastPage is the approximate size of a page at first, in bytes of objects, and for clients that
	// are slow; mostPage that for others.
	leastPage, mostPage = 64 << 10, batchBytes
	// mostSkipped is that of a page of which the watcher selects little, and holds only that.
	mostSkipped = 1 << 20
	// slow is how long the client of a slow watcher takes for a page.
	slow = time.Second
	// guess is the size of a change before one was seen.
	guess = 1 << 10
	// leastLag and mostLag bound the pauses of a watcher that waits for a hub that is behind.
	leastLag, mostLag = 5 * time.Millisecond, 250 * time.Millisecond
)

// pages chooses how much history a watcher reads from the hub at once. The zero value is of a watcher that has
// read none.
type pages struct {
	bytes int           // of a page
	each  int           // the average size of the changes in the last one
	at    time.Time     // when that was returned
	lag   time.Duration // the last pause for a hub that is behind
}

// limit returns the number of changes of the next page.
func (p *pages) limit(now time.Time) int {
	if p.bytes == 0 || !p.at.IsZero() && now.Sub(p.at) > slow {
		p.bytes = leastPage
	}
	each := p.each
	if each == 0 {
		each = guess
	}
	return min(max(1, p.bytes/each), batchEvents)
}

// took records a page, and the bytes of it that the watcher selects.
func (p *pages) took(now time.Time, changes []services.Change, selected int) {
	p.at = now
	bytes := 0
	for i := range changes {
		bytes += len(changes[i].Object.JSON) + len(changes[i].OldJSON)
	}
	if len(changes) > 0 {
		p.each, p.lag = max(1, bytes/len(changes)), 0
	}
	most := mostPage
	if selected <= leastPage/4 {
		most = mostSkipped
	}
	p.bytes = min(2*p.bytes, most)
}

// pause returns how long the watcher waits for a hub that is behind, longer each time.
func (p *pages) pause() time.Duration {
	p.lag = min(max(2*p.lag, leastLag), mostLag)
	return p.lag
}
