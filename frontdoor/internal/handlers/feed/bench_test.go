package feed

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// BenchmarkChange measures the CPU time of a change, until all watchers that select it
// have it: of 1,000 watchers all, or 20 by a label.
func BenchmarkChange(b *testing.B) {
	const watchers = 1000
	for _, of := range []struct {
		name     string
		selector func(i int) string
		selected int
	}{
		{"to all", func(int) string { return "" }, watchers},
		{"to 20 by label", func(i int) string { return fmt.Sprintf("group=g%d", i%50) }, 20},
		{"to 20 by in", func(i int) string { return fmt.Sprintf("group in (g%d,h%d)", i%50, i) }, 20},
		{"to 20 by notin", func(i int) string { return []string{"group notin (x)", "group notin (g0,g1,g2)"}[min(i/20, 1)] }, 20},
	} {
		b.Run(of.name, func(b *testing.B) {
			f := started(&history{}, 0, 1<<20)
			var got atomic.Int64
			done := make(chan struct{}, 1)
			for i := range watchers {
				w := f.watcher(Selection{Selector: selector(b, of.selector(i), "")})
				if _, err := w.advance(b.Context()); err != nil {
					b.Fatal(err)
				}
				go func() {
					for {
						events, err := w.Next(b.Context())
						if err != nil {
							return
						}
						if n := got.Add(int64(len(events))); n%int64(of.selected) == 0 {
							done <- struct{}{}
						}
					}
				}()
			}
			revision := int64(0)
			began := cpuTime()
			b.ReportAllocs()
			for b.Loop() {
				revision++
				c := change(revision, "a", "x")
				c.Type, c.Object.Labels = services.Added, map[string]string{"group": fmt.Sprint("g", revision%3), "app": "web"}
				f.add(c)
				<-done
			}
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N*of.selected), "cpu-ns/event")
		})
	}
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
