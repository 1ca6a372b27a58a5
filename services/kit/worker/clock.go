package worker

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// tolerance is the difference between two clocks that is ignored: the API returns its time in full seconds,
	// and its responses take some time.
	tolerance = 5 * time.Second
	// skewLogged is the least pause between two lines of the log about the difference.
	skewLogged = 10 * time.Minute
)

// Clock is the clock of a worker that deletes what is over, which cannot be undone. It is that of
// this machine, or that of the API if the former is ahead of it. A clock that jumps between two
// responses of the API does not change that.
type Clock struct {
	clock.RealClock
	log     *slog.Logger
	logged  rate.Sometimes
	machine func() time.Time
	told    atomic.Pointer[told]
}

// told is the time of the API in a response, and when that arrived. The latter is used for the time
// since then only, which no jump changes.
type told struct{ api, came time.Time }

// NewClock returns the clock of the workers that use the clients of a configuration, which it
// changes: it has to be called before these are made.
func NewClock(config *rest.Config, log *slog.Logger) *Clock {
	c := &Clock{log: log, logged: rate.Sometimes{Interval: skewLogged}, machine: time.Now}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &timed{next, c} })
	return c
}

// timed notes the time in each response.
type timed struct {
	http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (t *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if api, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.told.Store(&told{api, time.Now()})
	}
	return response, nil
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	now, last := c.machine(), c.told.Load()
	if last == nil {
		return now
	}
	api := last.api.Add(time.Since(last.came))
	ahead := now.Round(0).Sub(api)
	if ahead <= tolerance {
		return now
	}
	c.logged.Do(func() {
		c.log.Warn("the clock of this machine is ahead of that of the API, which is used instead", "by", ahead.Round(time.Second))
	})
	return api
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

var _ clock.WithTicker = (*Clock)(nil)
