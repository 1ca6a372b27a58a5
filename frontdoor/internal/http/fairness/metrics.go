package fairness

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// flowMetrics are the figures of one flow in its level. They vanish with the FlowSchema.
type flowMetrics struct {
	labels                                    []string
	dispatched, executing, inqueue            atomic.Int64
	full, limit, time, gone                   atomic.Int64 // refusals
	execution, length, waitServed, waitInVain prometheus.Histogram
}

var durations = []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}

func newFlowMetrics(level, flow string) *flowMetrics {
	labels := prometheus.Labels{"priority_level": level, "flow_schema": flow}
	histogram := func(name, help string, buckets []float64, more ...string) prometheus.Histogram {
		all := prometheus.Labels{}
		for k, v := range labels {
			all[k] = v
		}
		if len(more) > 0 {
			all[more[0]] = more[1]
		}
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "apiserver_flowcontrol_" + name, Help: help, Buckets: buckets, ConstLabels: all})
	}
	const waits = "Time that requests have waited in their queue."
	return &flowMetrics{
		labels:     []string{level, flow},
		execution:  histogram("request_execution_seconds", "Time for which requests have had seats.", durations),
		length:     histogram("request_queue_length_after_enqueue", "Length of the queue after a request has entered it.", []float64{0, 10, 25, 50, 100, 250, 500, 1000}),
		waitServed: histogram("request_wait_duration_seconds", waits, durations, "execute", "true"),
		waitInVain: histogram("request_wait_duration_seconds", waits, durations, "execute", "false"),
	}
}

func (m *flowMetrics) queued(length int) {
	m.inqueue.Add(1)
	m.length.Observe(float64(length))
}

func (m *flowMetrics) waited(served bool, took time.Duration) {
	if served {
		m.waitServed.Observe(took.Seconds())
	} else {
		m.waitInVain.Observe(took.Seconds())
	}
}

func (m *flowMetrics) refused(reason string) *atomic.Int64 {
	switch reason {
	case reasonFull:
		return &m.full
	case reasonLimit:
		return &m.limit
	case reasonTime:
		return &m.time
	}
	return &m.gone
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("apiserver_flowcontrol_"+name, help, labels, nil)
}

const (
	labelLevel = "priority_level"
	labelFlow  = "flow_schema"
)

var (
	descDispatched = describe("dispatched_requests_total", "Requests that have been given seats.", labelLevel, labelFlow)
	descRejected   = describe("rejected_requests_total", "Requests that have been refused.", labelLevel, labelFlow, "reason")
	descInqueue    = describe("current_inqueue_requests", "Requests that wait in queues.", labelLevel, labelFlow)
	descExecuting  = describe("current_executing_requests", "Requests that have seats.", labelLevel, labelFlow)
	descSeats      = describe("current_executing_seats", "Seats in use.", labelLevel)
	descQueued     = describe("current_inqueue_seats", "Seats that the requests in queues need.", labelLevel)
	descLimit      = describe("request_concurrency_limit", "Nominal seats of a level in this process.", labelLevel)
	descNominal    = describe("nominal_limit_seats", "Nominal seats of a level in this process.", labelLevel)
	descLower      = describe("lower_limit_seats", "Seats that a level does not lend.", labelLevel)
	descUpper      = describe("upper_limit_seats", "Seats that a level has at most.", labelLevel)
	descCurrent    = describe("current_limit_seats", "Seats that a level has at present.", labelLevel)
	descSmoothed   = describe("demand_seats_smoothed", "Seats that a level has needed of late.", labelLevel)
)

// Describe implements prometheus.Collector. What is collected depends on the configuration.
func (s *Shares) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Shares) Collect(out chan<- prometheus.Metric) {
	for _, f := range s.table.Load().flows {
		f.collect(out)
	}
	for _, l := range s.sorted() {
		l.collect(out)
	}
}

func (m *flowMetrics) collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, of prometheus.ValueType, value *atomic.Int64, more ...string) {
		out <- prometheus.MustNewConstMetric(d, of, float64(value.Load()), append(m.labels[:len(m.labels):len(m.labels)], more...)...)
	}
	send(descDispatched, prometheus.CounterValue, &m.dispatched)
	send(descInqueue, prometheus.GaugeValue, &m.inqueue)
	send(descExecuting, prometheus.GaugeValue, &m.executing)
	for _, reason := range []string{reasonFull, reasonLimit, reasonTime, reasonGone} {
		send(descRejected, prometheus.CounterValue, m.refused(reason), reason)
	}
	for _, h := range []prometheus.Histogram{m.execution, m.length, m.waitServed, m.waitInVain} {
		h.Collect(out)
	}
}

func (l *level) collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	send := func(d *prometheus.Desc, value int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), l.spec.Name)
	}
	send(descSeats, l.inUse)
	send(descQueued, l.waitingSeats)
	if l.spec.Exempt {
		return
	}
	send(descLimit, l.nominal)
	send(descNominal, l.nominal)
	send(descLower, l.least)
	send(descUpper, l.most)
	send(descCurrent, l.limit)
	send(descSmoothed, int(l.demand.smooth))
}
