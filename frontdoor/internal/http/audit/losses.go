package audit

import (
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/monotonic"
)

// lossesEvery is the least time between two log lines about dropped events of one output.
const lossesEvery = 10 * time.Second

// losses counts the dropped events of an output, and logs them with the last error: a full disk would otherwise be
// noticed only by those who read the metric.
type losses struct {
	prometheus.Counter
	log    *slog.Logger
	output string

	mu     sync.Mutex
	events int // since the last line
	logged int64
	err    error
}

// Inc implements prometheus.Counter.
func (l *losses) Inc() { l.Add(1) }

// Add implements prometheus.Counter.
func (l *losses) Add(n float64) {
	if n <= 0 {
		return
	}
	l.Counter.Add(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events += int(n)
	if l.logged > 0 && monotonic.Since(l.logged) < lossesEvery {
		return
	}
	l.log.Error("audit events are dropped", "output", l.output, "events", l.events, "error", l.err)
	l.events, l.logged, l.err = 0, monotonic.Now(), nil
}

// noted is a file whose errors are logged with the events that are lost by them.
type noted struct {
	io.WriteCloser
	losses *losses
}

// Write implements io.Writer.
func (n noted) Write(line []byte) (int, error) {
	written, err := n.WriteCloser.Write(line)
	if err != nil {
		n.losses.mu.Lock()
		n.losses.err = err
		n.losses.mu.Unlock()
	}
	return written, err
}

var _ prometheus.Counter = (*losses)(nil)
