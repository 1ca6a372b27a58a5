package watchhub

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/kittest/collector"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// TestChangesNameTheTraceOfTheirWrite: followers learn of it, and the hub continues it.
// What is no span is passed on and makes none; a deletion does not name the write before it.
func TestChangesNameTheTraceOfTheirWrite(t *testing.T) {
	received := collector.Start(t)
	tracer, err := tracing.New(tracing.Config{Endpoint: received.Address,
		Process: tracing.Process{Name: "watch-hub", Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	etcd, nats := testbed.StartEtcd(t), testbed.StartNATS(t)
	hub := startHub(t, etcd, nats.Connect(), func(c *Config) { c.Tracer = tracer })
	(&rig{etcd: etcd, nats: nats, hub: hub, bus: nats.Connect()}).untilPublishing(t, hub) // what it replays has no spans
	first := etcd.Write(pod("first"), "value")
	stream, err := changes.Source{Bus: nats.Connect(), Hub: hub}.Follow(t.Context(), pods, first)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	mark := bytes.Repeat([]byte{1}, 24)
	put := func(name string, trace []byte) {
		record, err := resource.DecodeRecord(testbed.Record(pod(name), "value"))
		if err != nil {
			t.Fatal(err)
		}
		record.Trace = trace
		if _, err := etcd.Put(t.Context(), pod(name).Path(), string(resource.EncodeRecord(record))); err != nil {
			t.Fatal(err)
		}
	}
	put("traced", mark)
	put("traced", mark)
	put("short", mark[:7])
	etcd.Remove(pod("traced"))
	heard := reach(t, stream, etcd.Write(pod("last"), "value"))
	var traces [][]byte
	for _, c := range heard {
		if c.Type == services.Deleted && c.Trace != nil {
			t.Errorf("the deletion names %v", c.Trace)
		}
		traces = append(traces, c.Trace)
	}
	if want := [][]byte{mark, mark, mark[:7], nil, nil}; !slices.EqualFunc(traces, want, bytes.Equal) {
		t.Errorf("the changes name %v, want %v", traces, want)
	}
	// A span ends after its message is published, which followers may see first.
	received.Wait(t, func(spans []collector.Span) bool { return len(spans) >= 2 })
	tracer.Shutdown(t.Context()) // which sends the rest
	spans := received.Spans()
	for _, s := range spans {
		if s.Name != "published" || s.Trace != "01010101010101010101010101010101" || s.Parent != "0101010101010101" {
			t.Errorf("got %+v", s)
		}
	}
	if len(spans) != 2 {
		t.Errorf("got %d spans, want 2", len(spans))
	}
}
