package run

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/ledger"
)

// held exposes the ledger of the process, by kinds of owners.
type held struct{ of *ledger.Ledger }

func heldDescriptions() (bytes, refused *prometheus.Desc) {
	labels := []string{"owner"}
	return prometheus.NewDesc("portico_held_bytes", "Bytes that texts and buffers of others take, by the kind of their owner.", labels, nil),
		prometheus.NewDesc("portico_held_refused_total", "Texts and buffers refused because their owner's share of memory was used up.", labels, nil)
}

// Describe implements prometheus.Collector.
func (h held) Describe(ch chan<- *prometheus.Desc) {
	bytes, refused := heldDescriptions()
	ch <- bytes
	ch <- refused
}

// Collect implements prometheus.Collector.
func (h held) Collect(ch chan<- prometheus.Metric) {
	bytes, refused := heldDescriptions()
	for _, kind := range ledger.Kinds() {
		n, times := h.of.HeldBy(kind)
		ch <- prometheus.MustNewConstMetric(bytes, prometheus.GaugeValue, float64(n), string(kind))
		ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(times), string(kind))
	}
}

var _ prometheus.Collector = held{}
