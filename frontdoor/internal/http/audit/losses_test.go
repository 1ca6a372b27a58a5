package audit

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
func (full) Close() error              { return nil }

// TestLossesAreLogged: dropped events are logged with the error and their number, a line for many of them.
func TestLossesAreLogged(t *testing.T) {
	var text strings.Builder
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "lost"})
	l := &losses{Counter: counter, log: slog.New(slog.NewTextHandler(&text, nil)), output: "log"}
	to := output{take: blocking(l, writer(noted{full{}, l}), nil)}
	for range 100 {
		to.take([]byte("event"))
	}
	if n := strings.Count(text.String(), "audit events are dropped"); n != 1 || !strings.Contains(text.String(), "events=1") || !strings.Contains(text.String(), "no space left") {
		t.Errorf("%d lines: %s", n, text.String())
	}
	l.logged -= int64(lossesEvery)
	to.take([]byte("event"))
	if !strings.Contains(text.String(), "events=100") {
		t.Errorf("the others are not in the next line: %s", text.String())
	}
	if n := testutil.ToFloat64(counter); n != 101 {
		t.Errorf("%v events are counted", n)
	}
}
