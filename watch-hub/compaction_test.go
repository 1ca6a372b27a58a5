package watchhub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/run"
)

// TestCompactionInterval: etcd is compacted at most once per --etcd-compaction-interval.
func TestCompactionInterval(t *testing.T) {
	b := newRig(t)
	b.hub.stop()
	b.hub = startHub(t, b.etcd, b.bus, func(c *Config) { c.CompactEvery = 5 * c.History })
	b.untilPublishing(t, b.hub)
	start := time.Now()
	var compactions []int
	compacted := int64(0)
	for i := range 12 { // one pass per history
		revision := b.etcd.Write(pod("a"), fmt.Sprint("value", i))
		stream, err := (changes.Source{Bus: b.bus, Hub: b.hub}).Follow(t.Context(), pods, revision-1)
		if err != nil {
			t.Fatal(err)
		}
		reach(t, stream, revision)
		stream.Close()
		if err := b.hub.main.compactAt(t.Context(), start.Add(time.Duration(i)*b.hub.config.History)); err != nil {
			t.Fatal(err)
		}
		saved, _, err := b.hub.main.loadMarks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if saved.Compacted > compacted {
			compacted = saved.Compacted
			compactions = append(compactions, i)
		}
	}
	if got := fmt.Sprint(compactions); got != "[1 6 11]" {
		t.Errorf("compactions in the passes %s, want [1 6 11]", got)
	}
}

// TestNoCompaction: with --etcd-compaction-interval=0 the loop ends at once.
func TestNoCompaction(t *testing.T) {
	hub := New(Config{History: time.Hour, CompactEvery: -1})
	hub.main.compactAlways(context.Background()) // returns
}

func TestCompactionIntervalFlag(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "0": -1, "10m": 10 * time.Minute, "10ms": 0, "-1m": 0} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags(fs)
		if value != "" {
			if err := fs.Set("etcd-compaction-interval", value); err != nil {
				t.Fatal(err)
			}
		}
		got, err := compactEvery(&run.Node{Flags: fs})
		if invalid := value == "10ms" || value == "-1m"; got != want || (err != nil) != invalid {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}
