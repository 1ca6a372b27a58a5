package tools

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/portico-platform/portico/internal/plain"
	"github.com/portico-platform/portico/internal/tools/openwatches"
)

// process is the measurements of a process, as the front door passes them on.
type process struct {
	Service   string   `json:"service"`
	Instance  string   `json:"instance"`
	Error     string   `json:"error"`
	Truncated bool     `json:"truncated"`
	Series    []series `json:"series"`
}

type series struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
	Count   uint64            `json:"count"`
	Buckets []bucket          `json:"buckets"`
}

type bucket struct {
	Bound float64 `json:"le"`
	Count uint64  `json:"count"`
}

// snapshot is what was measured at a time.
type snapshot struct {
	at        time.Time
	processes []process
	watches   openwatches.List
}

// report is the difference of two snapshots.
type report struct {
	Seconds   float64       `json:"seconds"`
	Processes []processLine `json:"processes"`
	Requests  []flowLine    `json:"requests"`
	Calls     []flowLine    `json:"calls"`
	// Inflight and Queued are requests, by the kind of their limit; LongRunning are watches and
	// connections.
	Inflight    map[string]float64 `json:"inflight"`
	Queued      map[string]float64 `json:"queued"`
	LongRunning float64            `json:"longRunning"`
	// Lag is by how many revisions each follower of an etcd is behind the newest that any process
	// has of this etcd.
	Lag     map[string]float64 `json:"lag"`
	Watches openwatches.List   `json:"watches"`
}

type processLine struct {
	Service    string  `json:"service"`
	Instance   string  `json:"instance"`
	Error      string  `json:"error,omitempty"`
	CPU        float64 `json:"cpuCores"`
	Memory     float64 `json:"memoryBytes"`
	Goroutines float64 `json:"goroutines"`
}

// flowLine is the rate and the latencies, in seconds, of one kind of request or call.
type flowLine struct {
	What   string  `json:"what"`
	Rate   float64 `json:"perSecond"`
	Errors float64 `json:"errorsPerSecond"`
	P50    float64 `json:"p50Seconds"`
	P99    float64 `json:"p99Seconds"`
}

// follower is what follows an etcd: a hub or a mirror.
type follower struct{ name, etcd string }

// compare returns the report of what happened between two snapshots.
func compare(before, after snapshot) report {
	r := report{Seconds: after.at.Sub(before.at).Seconds(), Inflight: map[string]float64{}, Queued: map[string]float64{},
		Lag: map[string]float64{}, Watches: after.watches}
	requests, calls, revisions := flows{}, flows{}, map[follower]float64{}
	for _, p := range after.processes {
		line := processLine{Service: p.Service, Instance: p.Instance, Error: p.Error}
		old := earlier(before, p)
		for _, s := range p.Series {
			was := old[key(s)]
			switch s.Name {
			case "process_cpu_seconds_total":
				line.CPU = max(0, s.Value-was.Value) / r.Seconds
			case "process_resident_memory_bytes":
				line.Memory = s.Value
			case "go_goroutines":
				line.Goroutines = s.Value
			case "apiserver_current_inflight_requests":
				r.Inflight[s.Labels["request_kind"]] += s.Value
			case "apiserver_current_inqueue_requests":
				r.Queued[s.Labels["request_kind"]] += s.Value
			case "apiserver_longrunning_requests":
				r.LongRunning += s.Value
			case "apiserver_request_duration_seconds":
				requests.observe(requestName(s.Labels), s, was)
			case "apiserver_request_total":
				if s.Labels["code"] >= "500" {
					requests.of(requestName(s.Labels)).errors += max(0, s.Value-was.Value)
				}
			case "portico_rpc_server_seconds":
				calls.observe(p.Service+" "+strings.TrimPrefix(s.Labels["method"], "/portico.v1."), s, was)
			case "portico_watchhub_revision":
				revisions[follower{"hub " + p.Instance, s.Labels["etcd"]}] = s.Value
			case "portico_store_mirror_revision":
				revisions[follower{"mirror " + p.Instance, s.Labels["etcd"]}] = s.Value
			}
		}
		r.Processes = append(r.Processes, line)
	}
	newest := map[string]float64{}
	for of, revision := range revisions {
		newest[of.etcd] = max(newest[of.etcd], revision)
	}
	for of, revision := range revisions {
		r.Lag[of.name+" "+of.etcd] = newest[of.etcd] - revision
	}
	r.Requests, r.Calls = requests.lines(r.Seconds), calls.lines(r.Seconds)
	return r
}

// earlier returns the series of the same process in an earlier snapshot.
func earlier(before snapshot, p process) map[string]series {
	old := map[string]series{}
	for _, other := range before.processes {
		if other.Service == p.Service && other.Instance == p.Instance {
			for _, s := range other.Series {
				old[key(s)] = s
			}
		}
	}
	return old
}

// key identifies a series; fmt prints maps in the order of their keys.
func key(s series) string { return s.Name + fmt.Sprint(s.Labels) }

func requestName(labels map[string]string) string {
	name := labels["verb"] + " " + cmp.Or(labels["resource"], "(no resource)")
	if labels["group"] != "" {
		name += "." + labels["group"]
	}
	if labels["subresource"] != "" {
		name += "/" + labels["subresource"]
	}
	return name
}

// flow is what happened of one kind.
type flow struct {
	count, errors float64
	buckets       map[float64]float64 // cumulative
}

type flows map[string]*flow

func (f flows) of(name string) *flow {
	if f[name] == nil {
		f[name] = &flow{buckets: map[float64]float64{}}
	}
	return f[name]
}

func (f flows) observe(name string, now, was series) {
	if was.Count > now.Count {
		was = series{} // the process was restarted
	}
	to := f.of(name)
	to.count += float64(now.Count - was.Count)
	for i, b := range now.Buckets {
		count := float64(b.Count)
		if i < len(was.Buckets) {
			count -= float64(was.Buckets[i].Count)
		}
		to.buckets[b.Bound] += count
	}
}

// lines returns what happened, most often first.
func (f flows) lines(seconds float64) []flowLine {
	lines := []flowLine{}
	for name, x := range f {
		if x.count > 0 || x.errors > 0 {
			lines = append(lines, flowLine{name, x.count / seconds, x.errors / seconds, x.quantile(0.5), x.quantile(0.99)})
		}
	}
	slices.SortFunc(lines, func(a, b flowLine) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.What, b.What)) })
	return lines
}

// quantile estimates a quantile within its bucket; above the last bound it is that bound.
func (x *flow) quantile(q float64) float64 {
	bounds := make([]float64, 0, len(x.buckets))
	for bound := range x.buckets {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	rank, lower, below := q*x.count, 0.0, 0.0
	for _, bound := range bounds {
		if n := x.buckets[bound]; n >= rank && n > below {
			return lower + (bound-lower)*(rank-below)/(n-below)
		}
		lower, below = bound, x.buckets[bound]
	}
	return lower
}

// shownLines is the number of lines of each table in text.
const shownLines = 8

// write writes the report as text.
func (r report) write(w io.Writer, now time.Time) error {
	plain.Fprintf(w, "in flight %s   queued %s   long-running %.0f   watches %d   lag %s\n\n",
		pairs(r.Inflight), pairs(r.Queued), r.LongRunning, r.Watches.Total, pairs(r.Lag))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROCESS\tINSTANCE\tCPU\tMEMORY\tGOROUTINES")
	for _, p := range r.Processes {
		if p.Error != "" {
			plain.Fprintf(t, "%s\t%s\t%s\n", p.Service, p.Instance, p.Error)
			continue
		}
		plain.Fprintf(t, "%s\t%s\t%.2f\t%s\t%.0f\n", p.Service, p.Instance, p.CPU, sizeText(p.Memory), p.Goroutines)
	}
	writeFlow(t, "REQUESTS", r.Requests)
	if len(r.Calls) > 0 {
		writeFlow(t, "CALLS", r.Calls)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	first := r.Watches
	first.Items = first.Items[:min(shownLines, len(first.Items))]
	return writeWatches(w, first, now)
}

func writeFlow(w io.Writer, title string, lines []flowLine) {
	plain.Fprintf(w, "\n%s\tPER SECOND\tERRORS\tP50\tP99\n", title)
	for _, l := range lines[:min(shownLines, len(lines))] {
		plain.Fprintf(w, "%s\t%.1f\t%.1f\t%s\t%s\n", l.What, l.Rate, l.Errors, milliseconds(l.P50), milliseconds(l.P99))
	}
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1fms", math.Round(seconds*1e4)/10) }

// pairs returns values with their names in order.
func pairs(values map[string]float64) string {
	var parts []string
	for name, value := range values {
		parts = append(parts, fmt.Sprintf("%s %.0f", name, value))
	}
	slices.Sort(parts)
	return cmp.Or(strings.Join(parts, ", "), "none")
}
