package sdk

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// metrics are the service's metrics in the text format of Prometheus. They are one histogram
// and one counter, written without the client library, which would double the modules that
// every admission service depends on. A service with metrics of its own uses the library and
// its own port.
type metrics struct {
	mu       sync.Mutex
	reviews  map[outcome]uint64
	duration map[phase]*histogram
}

// outcome are the labels of the counter.
type outcome struct {
	phase   phase
	verdict string // admitted, refused or failed
}

// histogram counts durations; counts has one more item than bounds.
type histogram struct {
	counts []uint64
	sum    time.Duration
}

// bounds are the upper limits of the buckets.
func bounds() []time.Duration {
	return []time.Duration{time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second}
}

func newMetrics() *metrics {
	m := &metrics{reviews: map[outcome]uint64{}, duration: map[phase]*histogram{}}
	for _, p := range []phase{mutating, validating} {
		m.duration[p] = &histogram{counts: make([]uint64, len(bounds())+1)}
		for _, verdict := range []string{"admitted", "refused", "failed"} {
			m.reviews[outcome{p, verdict}] = 0
		}
	}
	return m
}

// observe records a review.
func (m *metrics) observe(p phase, err error, took time.Duration) {
	verdict := "admitted"
	if err != nil {
		verdict = "failed"
		if refusal(err) != nil {
			verdict = "refused"
		}
	}
	bucket, _ := slices.BinarySearch(bounds(), took)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reviews[outcome{p, verdict}]++
	m.duration[p].counts[bucket]++
	m.duration[p].sum += took
}

// write writes the metrics.
func (m *metrics) write(w io.Writer, inFlight int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	b.WriteString("# HELP admission_reviews_total Reviews by phase and verdict.\n# TYPE admission_reviews_total counter\n")
	for _, p := range []phase{mutating, validating} {
		for _, verdict := range []string{"admitted", "refused", "failed"} {
			fmt.Fprintf(&b, "admission_reviews_total{phase=%q,verdict=%q} %d\n", p, verdict, m.reviews[outcome{p, verdict}])
		}
	}
	b.WriteString("# HELP admission_review_seconds Duration of reviews.\n# TYPE admission_review_seconds histogram\n")
	for _, p := range []phase{mutating, validating} {
		h, total := m.duration[p], uint64(0)
		for i, bound := range bounds() {
			total += h.counts[i]
			fmt.Fprintf(&b, "admission_review_seconds_bucket{phase=%q,le=\"%g\"} %d\n", p, bound.Seconds(), total)
		}
		total += h.counts[len(bounds())]
		fmt.Fprintf(&b, "admission_review_seconds_bucket{phase=%q,le=\"+Inf\"} %d\n", p, total)
		fmt.Fprintf(&b, "admission_review_seconds_sum{phase=%q} %g\nadmission_review_seconds_count{phase=%q} %d\n", p, h.sum.Seconds(), p, total)
	}
	fmt.Fprintf(&b, "# HELP admission_reviews_in_flight Reviews in progress.\n# TYPE admission_reviews_in_flight gauge\nadmission_reviews_in_flight %d\n", inFlight)
	_, err := io.WriteString(w, b.String())
	return err
}
