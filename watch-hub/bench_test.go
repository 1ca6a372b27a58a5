package watchhub

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/history"
	"github.com/portico-platform/portico/watch-hub/internal/publishing"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// benchmarkJSON has the size of a typical pod.
var benchmarkJSON = strings.Repeat("x", 2500)

func benchmarkStream(b *testing.B, bus *testbed.NATS, hub services.WatchHub, after int64) *changes.Stream {
	stream, err := changes.Source{Bus: bus.Connect(), Hub: hub, Buffer: 64 << 20}.Follow(b.Context(), pods, after)
	if err != nil {
		b.Fatal(err)
	}
	return stream
}

func drain(b *testing.B, stream *changes.Stream, through int64) {
	for {
		batch, err := stream.Next(b.Context())
		if err != nil {
			b.Error(err)
			return
		}
		if batch.Through >= through {
			return
		}
	}
}

// BenchmarkEtcdToFollower writes with 32 writers and follows all of it.
func BenchmarkEtcdToFollower(b *testing.B) {
	etcd, bus := testbed.StartEtcd(b), testbed.StartNATS(b)
	hub := startHub(b, etcd, bus.Connect(), nil)
	stream := benchmarkStream(b, bus, hub, etcd.Write(pod("first"), "value"))
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	var group sync.WaitGroup
	for writer := range 32 {
		group.Go(func() {
			for i := writer; i < b.N; i += 32 {
				etcd.Write(pod(fmt.Sprint("p", i%1000)), benchmarkJSON)
			}
		})
	}
	group.Wait()
	drain(b, stream, etcd.Write(pod("last"), "value"))
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "changes/s")
}

// BenchmarkOneProcess writes one object at a time, and follows each change in the same process.
// It reports how much later than etcd's response a follower has the change.
func BenchmarkOneProcess(b *testing.B) {
	etcd, bus := testbed.StartEtcd(b), testbed.StartNATS(b).ConnectPrivately()
	hub := startHub(b, etcd, bus, nil)
	stream, err := changes.Source{Bus: bus, Hub: hub}.Follow(b.Context(), pods, etcd.Write(pod("first"), "value"))
	if err != nil {
		b.Fatal(err)
	}
	var late time.Duration
	pace := time.NewTicker(2 * publishing.Tick) // changes do not wait for each other
	defer pace.Stop()
	for range b.N {
		<-pace.C
		revision := etcd.Write(pod("p"), benchmarkJSON)
		start := time.Now()
		drain(b, stream, revision)
		late += time.Since(start)
	}
	b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late/op")
}

// BenchmarkHubToFollower sends one change at a time through the window, the bus and a
// follower, without etcd.
func BenchmarkHubToFollower(b *testing.B) {
	bus := testbed.StartNATS(b)
	hub := New(Config{Etcd: testbed.StartEtcd(b).Client, Bus: bus.Connect(), History: time.Hour, WindowBytes: 64 << 20,
		KeyLifetime: time.Hour, Log: slog.New(slog.DiscardHandler)})
	go hub.keys.Run(b.Context())
	<-hub.keys.Ready()
	hub.election.leading.Store(true)
	close(hub.main.ready)
	stream := benchmarkStream(b, bus, hub, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		drain(b, stream, int64(b.N))
	}()
	json := []byte(`{"metadata":{"name":"p"},"spec":"` + benchmarkJSON + `"}`)
	key := resource.Key{GroupResource: pods, Namespace: "ns", Name: "p"}
	labels := map[string]string{"app": "web"}
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	for revision := int64(1); revision <= int64(b.N); revision++ {
		hub.main.take(history.Run{Through: revision, Changes: []services.Change{{
			Type:   services.Modified,
			Object: services.Object{Key: key, Revision: revision, UID: "uid", JSON: json, Labels: labels}, OldLabels: labels,
		}}})
	}
	hub.main.publish(time.Now())
	hub.main.tell(time.Now())
	<-done
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "changes/s")
}
