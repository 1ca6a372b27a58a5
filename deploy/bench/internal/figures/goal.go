package figures

import "fmt"

// Goal is what a figure has to be: beside the peer's, or by itself.
type Goal struct {
	metric   Metric
	least    bool // else at most
	absolute bool // else as a part of the peer's
	value    float64
}

// AtLeast wants a figure to be so many times the peer's.
func AtLeast(m Metric, ratio float64) Goal { return Goal{metric: m, least: true, value: ratio} }

// AtMost wants a figure to be no more than such a part of the peer's.
func AtMost(m Metric, ratio float64) Goal { return Goal{metric: m, value: ratio} }

// Below wants a figure to be no more than a value, whatever the peer's is.
func Below(m Metric, value float64) Goal { return Goal{metric: m, absolute: true, value: value} }

// String is the goal as a report tells it.
func (g Goal) String() string {
	switch {
	case g.absolute:
		return "≤ " + g.metric.text(g.value)
	case g.least:
		return fmt.Sprintf("≥ %.3g", g.value)
	}
	return fmt.Sprintf("≤ %.3g", g.value)
}

// met reports whether a figure is what it has to be beside the peer's.
func (g Goal) met(own, peer float64) bool {
	switch {
	case g.absolute:
		return own <= g.value
	case g.least:
		return own >= g.value*peer
	}
	return own <= g.value*peer
}
