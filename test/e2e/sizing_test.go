package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	sizedObjects, sizedBytes, sizedWriters = 10_000, 2 << 10, 16
	sizedWatches, sizedRate                = 1_000, 50
	// sizedRest is how long processes rest before their memory counts, and sizedChanges
	// how long watchers follow changes.
	sizedRest, sizedChanges = 45 * time.Second, 20 * time.Second
	// ticksPerSecond is the unit of /proc/PID/stat.
	ticksPerSecond = 100
)

// TestSizing measures what docs/operations/sizing.md shows: PORTICO_SIZING=1 go test -run
// TestSizing -v ./test/e2e
func TestSizing(t *testing.T) {
	if os.Getenv("PORTICO_SIZING") == "" {
		t.Skip("a measurement of some minutes: set PORTICO_SIZING=1")
	}
	s, c := startSuite(t, vocabulary.K8s())
	pause(t, sizedRest)
	idle := s.usage(t)
	s.fillSized(t, c)
	written := s.usage(t)
	pause(t, sizedRest)
	full := s.usage(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	events := openSized(ctx, t, c)
	pause(t, sizedRest)
	watched := s.usage(t)
	changes := s.changeSized(t, c)
	eventually(t, "all watchers have seen the changes", func() bool { return events.Load() >= changes*sizedWatches })
	changed := s.usage(t)
	var table strings.Builder
	fmt.Fprintf(&table, "\n%d objects of %d bytes; %d watches; %d changes in %v\n", sizedObjects, sizedBytes, sizedWatches, changes, sizedChanges)
	table.WriteString("| process | idle MiB | + 10,000 objects MiB | + 1,000 watches MiB | ms CPU per create | µs CPU per event |\n|---|---:|---:|---:|---:|---:|\n")
	for _, name := range slices.Sorted(maps.Keys(idle)) {
		fmt.Fprintf(&table, "| %s | %.0f | %.0f | %.0f | %.2f | %.1f |\n", name, idle[name].memory, full[name].memory-idle[name].memory, watched[name].memory-full[name].memory,
			(written[name].cpu-idle[name].cpu)*1e3/sizedObjects, (changed[name].cpu-watched[name].cpu)*1e6/float64(changes*sizedWatches))
	}
	t.Log(table.String())
}

// pause waits for nothing but time: what is measured is rest.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// used is what a process uses: MiB that are resident, and seconds of CPU since its start.
type used struct{ memory, cpu float64 }

func (s *suite) usage(t *testing.T) map[string]used {
	t.Helper()
	all := map[string]used{}
	for name, p := range s.processes {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			t.Skip("needs /proc:", err)
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest) // the first one is the third of the file
		number := func(i int) float64 { n, _ := strconv.ParseFloat(fields[i-3], 64); return n }
		all[name] = used{memory: number(24) * float64(os.Getpagesize()) / (1 << 20), cpu: (number(14) + number(15)) / ticksPerSecond}
	}
	return all
}

// fillSized creates the objects.
func (s *suite) fillSized(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	text := strings.Repeat("x", sizedBytes)
	var next atomic.Int64
	var all sync.WaitGroup
	for range sizedWriters {
		all.Go(func() {
			for n := next.Add(1); n <= sizedObjects; n = next.Add(1) {
				answer, err := c.Do(t.Context(), post(configMapPath, fmt.Sprintf(`{"metadata":{"name":"sized-%d"},"data":{"text":%q}}`, n, text)))
				if err != nil || answer.Code != http.StatusCreated {
					t.Errorf("%d %v", answer.Code, err) //nolint:errorlint // may be nil
					return
				}
			}
		})
	}
	all.Wait()
}

// openSized opens the watches, and counts their events.
func openSized(ctx context.Context, t *testing.T, c *cluster.Cluster) *atomic.Int64 {
	t.Helper()
	events := &atomic.Int64{}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	ok(t, c, cluster.Request{Path: configMapPath + "?limit=1"}).Decode(t, &list)
	for range sizedWatches {
		response, err := c.Send(ctx, cluster.Request{Path: configMapPath + "?watch=1&timeoutSeconds=600&resourceVersion=" + list.Metadata.ResourceVersion})
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(err)
		}
		go func() {
			defer response.Body.Close()
			lines := bufio.NewReader(response.Body)
			for {
				_, more, err := lines.ReadLine()
				if err != nil {
					if err != io.EOF && ctx.Err() == nil { //nolint:errorlint // of ReadLine itself
						t.Errorf("a watch has ended: %v", err)
					}
					return
				}
				if !more {
					events.Add(1)
				}
			}
		}()
	}
	return events
}

// changeSized changes one object after the other, and returns how many changes there were.
func (s *suite) changeSized(t *testing.T, c *cluster.Cluster) (changes int64) {
	t.Helper()
	ticks := time.NewTicker(time.Second / sizedRate)
	defer ticks.Stop()
	for deadline := time.Now().Add(sizedChanges); time.Now().Before(deadline); changes++ {
		<-ticks.C
		ok(t, c, cluster.Request{Method: http.MethodPatch, Path: fmt.Sprintf("%s/sized-%d", configMapPath, changes%sizedObjects+1), Type: mergePatch,
			Body: fmt.Sprintf(`{"data":{"n":"%d"}}`, changes)})
	}
	return changes
}
