package extensions

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// Documents of an available extension are read again after readAgain, or after readSoon if that has failed; each
	// further failure doubles the pause, up to readLate.
	readTick  = 500 * time.Millisecond
	readAgain = 30 * time.Second
	readSoon  = 3 * time.Second
	readLate  = time.Minute
	// quickReads is the number of extensions that are read at once, and slowReads that of others whose reading takes
	// longer than slowAfter, or took longer the last time: they do not hinder the quick ones.
	quickReads = 2
	slowReads  = 2
	slowAfter  = 2 * time.Second
)

// Read keeps the documents of the extensions up to date until ctx ends, and then returns
// nil. Every front door reads them, since each merges them with its own. Those that have waited longest are first.
func (h *Handlers) Read(ctx context.Context) error {
	ticks := time.NewTicker(readTick)
	defer ticks.Stop()
	l := lanes{quick: make(chan struct{}, quickReads), slow: make(chan struct{}, slowReads)}
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
		for _, d := range h.due() {
			if free, ok := l.enter(d.slow); ok {
				d.of.startReading()
				go h.readWithin(ctx, free, d)
			}
		}
	}
}

// due is an extension whose documents are to be read.
type due struct {
	of       *extension
	since    time.Time
	slow     bool
	describe bool // its OpenAPI documents are published
}

// due returns the extensions whose documents are to be read, those that have waited longest first.
func (h *Handlers) due() (all []due) {
	now := h.now()
	for i, x := range h.all() {
		x.mu.Lock()
		if x.condition.status == "True" && !x.reading && (!now.Before(x.readNext) || x.of != x.checked()) {
			d := due{of: x, since: x.readNext, slow: x.slow, describe: i < maxDescribed}
			if x.of != x.checked() {
				d.since, d.slow = time.Time{}, false // nothing is known of another server
			}
			all = append(all, d)
		}
		x.mu.Unlock()
	}
	slices.SortStableFunc(all, func(a, b due) int { return a.since.Compare(b.since) })
	return all
}

// pause returns how long the documents are not read. The caller holds the lock.
func (x *documents) pause(failed bool) time.Duration {
	if !failed {
		x.failures = 0
		return readAgain
	}
	x.failures++
	return min(readSoon<<min(x.failures-1, 10), readLate)
}

// lanes are the places of readings.
type lanes struct{ quick, slow chan struct{} }

// place is that of one reading.
type place struct {
	lanes *lanes
	mu    sync.Mutex
	in    chan struct{} // nil for none
	late  bool
}

// enter returns a place, if one is free.
func (l *lanes) enter(slow bool) (*place, bool) {
	lane := l.quick
	if slow {
		lane = l.slow
	}
	select {
	case lane <- struct{}{}:
		return &place{lanes: l, in: lane}, true
	default:
		return nil, false
	}
}

// slowDown gives a place among the quick ones to others. It reports whether there is one among the slow ones.
func (p *place) slowDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = true
	if p.in != p.lanes.quick {
		return true
	}
	<-p.in
	select {
	case p.lanes.slow <- struct{}{}:
		p.in = p.lanes.slow
		return true
	default:
		p.in = nil
		return false
	}
}

// leave gives the place back. It reports whether the reading was slow.
func (p *place) leave() (late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != nil {
		<-p.in
		p.in = nil
	}
	return p.late
}

// readWithin reads the documents of an extension in a place. A reading that turns out to be slow ends if too many are.
func (h *Handlers) readWithin(ctx context.Context, p *place, d due) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(slowAfter, func() {
		if !p.slowDown() {
			cancel()
		}
	})
	defer late.Stop()
	h.read(ctx, d.of, d.describe)
	slow := p.leave()
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.of.slow = slow
}
