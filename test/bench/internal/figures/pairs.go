package figures

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Pairs decide whether the first server of a report is slower than the second, which is
// measured in turns with it: each run and that of the other server beside it are a pair.
type Pairs struct {
	// Metric is the compared figure; less is better.
	Metric Metric
	// Level is the probability that a report without any difference fails.
	Level float64
	// Tolerance is the ratio up to which a slower server is accepted.
	Tolerance float64
}

// pair is the comparison of one measurement.
type pair struct {
	name   string
	slower int     // pairs in which the first server needs more
	of     int     // pairs that differ
	ratio  float64 // the median of all pairs
	// chance is the probability of as many or more slower pairs without any difference.
	chance float64
}

// compare returns the comparisons of all measurements that have the figure.
func (p *Pairs) compare(lines []Line) (all []pair) {
	for _, l := range lines {
		if !p.Metric.applies(l.Results[0][0]) {
			continue
		}
		c := pair{name: l.Name}
		var ratios []float64
		for i, result := range l.Results[0] {
			own, other := p.Metric.of(result), p.Metric.of(l.Results[1][i])
			if other > 0 {
				ratios = append(ratios, own/other)
			}
			if own > other {
				c.slower++
			}
			if own != other {
				c.of++
			}
		}
		c.ratio, c.chance = median(ratios), atLeast(c.slower, c.of)
		all = append(all, c)
	}
	return all
}

// worse reports whether one of n comparisons is beyond noise: its chance is below its share
// of the level.
func (p *Pairs) worse(c pair, n int) bool {
	return c.chance <= p.Level/float64(n) && c.ratio > p.Tolerance
}

// Enough returns an error if so few rounds of n measurements cannot fail. It returns nil for nil.
func (p *Pairs) Enough(rounds, n int) error {
	if p == nil {
		return nil
	}
	if needed := int(math.Ceil(math.Log2(float64(n) / p.Level))); rounds < needed {
		return fmt.Errorf("%d rounds of %d measurements prove nothing at a level of %v: at least %d are needed", rounds, n, p.Level, needed)
	}
	return nil
}

// rows are the rows of a report.
func (p *Pairs) rows(lines []Line) [][]string {
	rows := [][]string{{"measurement", "pairs", "slower", "median ratio", "chance", "beyond noise"}}
	all := p.compare(lines)
	for _, c := range all {
		beyond := "no"
		if p.worse(c, len(all)) {
			beyond = "yes"
		}
		rows = append(rows, []string{c.name, fmt.Sprint(c.of), fmt.Sprint(c.slower), fmt.Sprintf("%.3f", c.ratio), fmt.Sprintf("%.4f", c.chance), beyond})
	}
	return rows
}

// Failures returns an error that lists the measurements in which the first server is slower
// beyond noise. It returns nil for nil.
func (p *Pairs) Failures(lines []Line) error {
	if p == nil {
		return nil
	}
	var failures []error
	all := p.compare(lines)
	for _, c := range all {
		if p.worse(c, len(all)) {
			failures = append(failures, fmt.Errorf("%s: %s is %.2f times that of before, more in %d of %d pairs", c.name, p.Metric, c.ratio, c.slower, c.of))
		}
	}
	return errors.Join(failures...)
}

// atLeast returns the probability of k or more heads in n tosses of a coin.
func atLeast(k, n int) (p float64) {
	for ; k <= n; k++ {
		p += choose(n, k) / math.Pow(2, float64(n))
	}
	return min(p, 1)
}

// choose returns the binomial coefficient.
func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c *= float64(n-i) / float64(i+1)
	}
	return c
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}
