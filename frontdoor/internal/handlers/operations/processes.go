package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// askTimeout bounds the question to one process, maxBytes its answer, maxSeries what is
	// passed on of it, and maxReplicas the addresses of one service.
	askTimeout  = 2 * time.Second
	maxBytes    = 8 << 20
	maxSeries   = 2000
	maxReplicas = 32
)

// targetsFlag names the status addresses of other processes.
const targetsFlag = "status-targets"

// Register declares the flag.
func Register(fs *pflag.FlagSet) {
	fs.StringToString(targetsFlag, nil, "comma-separated `service=host:port` pairs: the --status-address of the processes whose metrics "+
		"/debug/portico/v1/processes shows; each address of a name is a replica")
}

// Processes asks the processes of the suite for their measurements.
type Processes struct {
	name, instance string
	own            prometheus.Gatherer
	targets        map[string]string
	client         *http.Client
	lookup         func(ctx context.Context, host string) ([]string, error)
}

// NewProcesses returns those of the flag. The front door itself is always one, with the id of its
// watches.
func NewProcesses(n *run.Node, name, instance string) (*Processes, error) {
	p := &Processes{name: name, instance: instance, own: n.Metrics, lookup: net.DefaultResolver.LookupHost,
		client: &http.Client{Timeout: askTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	p.targets, _ = n.Flags.GetStringToString(targetsFlag)
	for service, address := range p.targets {
		_, port, err := net.SplitHostPort(address)
		if _, number := strconv.ParseUint(port, 10, 16); err != nil || number != nil || service == "" {
			return nil, run.Usagef("--%s: %q is not of the form service=host:port", targetsFlag, service+"="+address)
		}
	}
	return p, nil
}

// Process is the measurements of a process.
type Process struct {
	Service  string `json:"service"`
	Instance string `json:"instance"`
	// Error is why there are no measurements.
	Error string `json:"error,omitempty"`
	// Truncated is true if there are more series than the answer has.
	Truncated bool     `json:"truncated,omitempty"`
	Series    []Series `json:"series,omitempty"`
}

// Series is a value of a metric, or the count, sum and cumulative buckets of a histogram.
type Series struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Value   float64           `json:"value"`
	Count   uint64            `json:"count,omitempty"`
	Buckets []Bucket          `json:"buckets,omitempty"`
}

// Bucket counts the observations up to a bound, in seconds.
type Bucket struct {
	Bound float64 `json:"le"`
	Count uint64  `json:"count"`
}

type processList struct {
	Items []Process `json:"items"`
}

// All asks all processes at the same time. Those that do not answer have an error.
func (p *Processes) All(ctx context.Context) []Process {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	families, err := p.own.Gather()
	all := []Process{measured(Process{Service: p.name, Instance: p.instance}, families, err)}
	var mu sync.Mutex
	var group sync.WaitGroup
	for service, address := range p.targets {
		group.Go(func() {
			found := p.ask(ctx, service, address)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b Process) int { return strings.Compare(a.Service+" "+a.Instance, b.Service+" "+b.Instance) })
	return all
}

// ask asks the replicas of a service.
func (p *Processes) ask(ctx context.Context, service, address string) []Process {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return []Process{{Service: service, Instance: address, Error: err.Error()}}
	}
	replicas, err := p.lookup(ctx, host)
	if err != nil {
		return []Process{{Service: service, Instance: address, Error: "its name could not be resolved"}}
	}
	replicas = replicas[:min(maxReplicas, len(replicas))]
	found := make([]Process, len(replicas))
	var group sync.WaitGroup
	for i, replica := range replicas {
		group.Go(func() {
			at := net.JoinHostPort(replica, port)
			families, err := p.fetch(ctx, at)
			found[i] = measured(Process{Service: service, Instance: at}, families, err)
		})
	}
	group.Wait()
	return found
}

func (p *Processes) fetch(ctx context.Context, address string) ([]*dto.MetricFamily, error) {
	page := url.URL{Scheme: "http", Host: address, Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, errors.New("it does not respond")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it responded with %d", response.StatusCode)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, maxBytes))
	if err != nil {
		return nil, errors.New("its response is not a list of metrics")
	}
	families := make([]*dto.MetricFamily, 0, len(read))
	for _, family := range read {
		families = append(families, family)
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, nil
}

// shown reports whether a metric is one of the suite.
func shown(name string) bool {
	return strings.HasPrefix(name, "portico_") || strings.HasPrefix(name, "apiserver_") ||
		name == "process_cpu_seconds_total" || name == "process_resident_memory_bytes" || name == "process_start_time_seconds" || name == "go_goroutines"
}

// measured adds the measurements to a process.
func measured(p Process, families []*dto.MetricFamily, err error) Process {
	if err != nil {
		p.Error = err.Error()
		return p
	}
	for _, family := range families {
		if !shown(family.GetName()) {
			continue
		}
		for _, metric := range family.GetMetric() {
			if len(p.Series) == maxSeries {
				p.Truncated = true
				return p
			}
			if s := series(family.GetName(), metric); !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) { // which JSON cannot hold
				p.Series = append(p.Series, s)
			}
		}
	}
	return p
}

func series(name string, m *dto.Metric) Series {
	s := Series{Name: name}
	for _, label := range m.GetLabel() {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[label.GetName()] = label.GetValue()
	}
	switch {
	case m.Histogram != nil:
		s.Count, s.Value = m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()
		for _, b := range m.Histogram.GetBucket() {
			s.Buckets = append(s.Buckets, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
		}
		s.Buckets = slices.DeleteFunc(s.Buckets, func(b Bucket) bool { return b.Bound > maxBound })
	case m.Counter != nil:
		s.Value = m.Counter.GetValue()
	case m.Gauge != nil:
		s.Value = m.Gauge.GetValue()
	case m.Untyped != nil:
		s.Value = m.Untyped.GetValue()
	}
	return s
}

// maxBound is above all bounds of buckets except +Inf, which JSON cannot hold.
const maxBound = 1e12
