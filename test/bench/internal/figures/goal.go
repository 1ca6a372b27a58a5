package figures

import "fmt"

// Goal is a bound of a figure, relative to the peer's or absolute.
type Goal struct {
	metric   Metric
	least    bool // else at most
	absolute bool // else a ratio to the peer's
	value    float64
}

// AtLeast requires a figure of at least ratio times the peer's.
func AtLeast(m Metric, ratio float64) Goal { return Goal{metric: m, least: true, value: ratio} }

// AtMost requires a figure of at most ratio times the peer's.
func AtMost(m Metric, ratio float64) Goal { return Goal{metric: m, value: ratio} }

// Below requires a figure of at most value, regardless of the peer's.
func Below(m Metric, value float64) Goal { return Goal{metric: m, absolute: true, value: value} }

// String returns the goal for a report.
func (g Goal) String() string {
	switch {
	case g.absolute:
		return "≤ " + g.metric.text(g.value)
	case g.least:
		return fmt.Sprintf("≥ %.3g", g.value)
	}
	return fmt.Sprintf("≤ %.3g", g.value)
}

// met reports whether a figure meets the goal, given the peer's.
func (g Goal) met(own, peer float64) bool {
	switch {
	case g.absolute:
		return own <= g.value
	case g.least:
		return own >= g.value*peer
	}
	return own <= g.value*peer
}
