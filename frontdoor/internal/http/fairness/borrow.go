package fairness

import (
	"context"
	"math"
	"time"
)

const (
	// lendEvery is how often the seats are divided by demand.
	lendEvery = 10 * time.Second
	// smoothing is the weight of the past in the demand of a level, which decays in some minutes.
	smoothing = 0.977
	// leastTarget keeps levels without demand from having no part in what is left.
	leastTarget = 0.001
)

// demand is how many seats a level needs.
type demand struct {
	high   int // the most since the last division
	smooth float64
}

func (d *demand) note(seats int) { d.high = max(d.high, seats) }

// Run divides the seats by demand, and adjusts them to the processors, until ctx ends, and then returns nil.
func (s *Shares) Run(ctx context.Context) error {
	ticks := time.NewTicker(lendEvery)
	defer ticks.Stop()
	adjust := time.NewTicker(adjustEvery)
	defer adjust.Stop()
	adjust.Stop()
	idle := 0
	for {
		select {
		case <-ticks.C:
			s.mu.Lock()
			s.lend()
			s.mu.Unlock()
		case <-s.pressure.wake:
			s.pressure.waited() // what was before does not count
			idle = 0
			adjust.Reset(adjustEvery)
		case <-adjust.C:
			if idle++; s.adjust() {
				idle = 0
			}
			if idle == restAfter {
				adjust.Stop()
				s.pressure.adjusting.Store(false)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// divide computes the nominal seats of the levels, and gives them these seats. The caller holds mu.
func (s *Shares) divide() {
	total, sum := s.seats(), 0
	for _, l := range s.levels {
		sum += l.spec.Shares
	}
	now := time.Now()
	for _, l := range s.levels {
		l.mu.Lock()
		l.nominal = (total*l.spec.Shares + max(sum, 1) - 1) / max(sum, 1)
		l.least = l.nominal - percent(l.nominal, l.spec.Lendable)
		l.most = total
		if l.spec.Borrowing >= 0 {
			l.most = min(total, l.nominal+percent(l.nominal, l.spec.Borrowing))
		}
		limit := max(1, l.nominal)
		l.mu.Unlock()
		l.setLimit(limit, now)
	}
}

func percent(of, percent int) int { return int(math.Round(float64(of) * float64(percent) / 100)) }

// claim is what a level may get of the seats.
type claim struct {
	level              *level
	least, most, wants float64
}

// lend gives levels with more demand than seats what others do not need. A level keeps what it needs
// of its nominal seats, and never has less than it does not lend. The caller holds mu.
func (s *Shares) lend() {
	var claims []claim
	var sum float64
	for _, l := range s.levels {
		l.mu.Lock()
		c, exempt := l.claim(), l.spec.Exempt
		sum += float64(l.nominal)
		l.mu.Unlock()
		if exempt {
			sum -= c.least // which others may not use
			continue
		}
		claims = append(claims, c)
	}
	part := proportion(claims, sum)
	now := time.Now()
	for _, c := range claims {
		c.level.setLimit(max(1, int(math.Round(c.get(part)))), now)
	}
}

// claim returns what the level may get, and begins a new period of its demand.
func (l *level) claim() claim {
	high := float64(l.demand.high)
	l.demand.smooth = max(high, smoothing*l.demand.smooth+(1-smoothing)*high)
	l.demand.high = l.inUse + l.waitingSeats
	c := claim{level: l, least: max(float64(l.least), min(float64(l.nominal), high)), most: float64(l.most)}
	c.wants = max(c.least, l.demand.smooth, leastTarget)
	c.most = max(c.most, c.least)
	return c
}

// get returns the seats of a claim if each claim gets that proportion of what it wants.
func (c claim) get(part float64) float64 { return min(max(c.least, part*c.wants), c.most) }

// proportion returns the proportion with which the claims get sum seats together, as far as their
// limits allow.
func proportion(claims []claim, sum float64) float64 {
	low, high := 0.0, max(1, sum)/leastTarget
	for range 64 { // halving ends at the precision of the numbers
		middle := (low + high) / 2
		var got float64
		for _, c := range claims {
			got += c.get(middle)
		}
		if got > sum {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
