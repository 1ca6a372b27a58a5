package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/histogram"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/internal/plain"
)

// figures are what a run measures.
type figures struct {
	verbs     map[verb]*count     // all verbs
	delivered histogram.Histogram // changes, to watchers

	lock   sync.Mutex
	errors map[string]*failure
}

// count is what is known of the requests of one verb.
type count struct {
	requests, failed, bytes atomic.Int64
	latencies               histogram.Histogram
}

// failure is one kind of error.
type failure struct {
	Error    string `json:"error"`
	Requests int64  `json:"requests"`
	Example  string `json:"example"`
}

func newFigures() *figures {
	f := &figures{verbs: map[verb]*count{}, errors: map[string]*failure{}}
	for _, v := range verbs() {
		f.verbs[v] = &count{}
	}
	return f
}

// record records a request. Latencies are those of successes.
func (f *figures) record(v verb, latency time.Duration, size int64, err error) {
	c := f.verbs[v]
	c.requests.Add(1)
	c.bytes.Add(size)
	if err == nil {
		c.latencies.Record(latency)
		return
	}
	c.failed.Add(1)
	what, example := describe(err)
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.errors[what] == nil {
		f.errors[what] = &failure{Error: what, Example: example}
	}
	f.errors[what].Requests++
}

// message finds the message in a Status, of which only the beginning may be there.
var message = regexp.MustCompile(`"message":"((?:[^"\\]|\\.)*)`)

// describe returns the kind of an error, of which there are few, and its text.
func describe(err error) (what, example string) {
	var refused *wire.StatusError
	if !errors.As(err, &refused) {
		return "no response", plain.Escape(err.Error())
	}
	example = refused.Text
	if found := message.FindStringSubmatch(example); found != nil {
		example = found[1]
	}
	return fmt.Sprintf("%d %s", refused.Code, http.StatusText(refused.Code)), plain.Escape(example)
}

// report is the result of a run. Times are in milliseconds.
type report struct {
	Server      string     `json:"server"`
	Seconds     float64    `json:"seconds"`
	Interrupted bool       `json:"interrupted,omitempty"`
	Clients     int        `json:"clients"`
	Rate        float64    `json:"rate"`
	Verbs       []line     `json:"verbs"`
	Watchers    *deliverer `json:"watchers,omitempty"`
	Errors      []*failure `json:"errors,omitempty"`
}

// latencies are quantiles in milliseconds.
type latencies struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func quantiles(h *histogram.Histogram) latencies {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return latencies{P50: ms(h.Quantile(0.5)), P90: ms(h.Quantile(0.9)), P99: ms(h.Quantile(0.99)), Max: ms(h.Max())}
}

// line is what was measured of one verb.
type line struct {
	Verb      verb    `json:"verb"`
	Requests  int64   `json:"requests"`
	PerSecond float64 `json:"perSecond"`
	Errors    int64   `json:"errors"`
	Bytes     int64   `json:"bytes"`
	latencies
}

// deliverer is what was measured of the watchers.
type deliverer struct {
	Watchers  int     `json:"watchers"`
	Events    int64   `json:"events"`
	PerSecond float64 `json:"perSecond"`
	Bytes     int64   `json:"bytes"`
	Resumed   int     `json:"resumed"`
	latencies
}

func (l *loading) report(groups []*load.WatchGroup, elapsed time.Duration, interrupted bool) *report {
	r := &report{Server: l.version, Seconds: elapsed.Seconds(), Interrupted: interrupted, Clients: l.clients, Rate: l.rate, Verbs: []line{}}
	for _, v := range verbs() {
		c := l.figures.verbs[v]
		if n := c.requests.Load(); n > 0 {
			r.Verbs = append(r.Verbs, line{Verb: v, Requests: n, PerSecond: float64(n) / r.Seconds, Errors: c.failed.Load(), Bytes: c.bytes.Load(), latencies: quantiles(&c.latencies)})
		}
	}
	if l.watchers > 0 {
		all, resumed := load.Received(groups)
		r.Watchers = &deliverer{Watchers: l.watchers, Events: int64(all.Operations), PerSecond: float64(all.Operations) / r.Seconds, Bytes: all.Bytes, Resumed: resumed, latencies: quantiles(&l.figures.delivered)}
	}
	for _, what := range slices.Sorted(maps.Keys(l.figures.errors)) {
		r.Errors = append(r.Errors, l.figures.errors[what])
	}
	return r
}

// write writes the report as tables.
func (r *report) write(w io.Writer) error {
	end := ""
	if r.Interrupted {
		end = ", interrupted"
	}
	fmt.Fprintf(w, "%s, %d clients, %.1f s%s; latencies in ms\n\n", plain.Escape(r.Server), r.Clients, r.Seconds, end)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "VERB\tREQUESTS\tPER SECOND\tERRORS\tP50\tP90\tP99\tMAX\tKiB\t")
	for _, l := range r.Verbs {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%d\t%s\t%.0f\t\n", l.Verb, l.Requests, l.PerSecond, l.Errors, l.latencies, float64(l.Bytes)/1024)
	}
	if d := r.Watchers; d != nil {
		fmt.Fprintf(t, "watch\t%d\t%.1f\t\t%s\t%.0f\t\n", d.Events, d.PerSecond, d.latencies, float64(d.Bytes)/1024)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if d := r.Watchers; d != nil {
		plain.Fprintf(w, "\nwatch: events to %d watchers; %d watches were ended and resumed\n", d.Watchers, d.Resumed)
	}
	for _, e := range r.Errors {
		plain.Fprintf(w, "\n%d requests: %s: %s\n", e.Requests, e.Error, e.Example)
	}
	return nil
}

// String returns the quantiles as columns.
func (l latencies) String() string {
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", l.P50, l.P90, l.P99, l.Max)
}
