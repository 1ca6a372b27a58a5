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

// TestClocksOfHubsDoNotChangeTheHistory: marks of a hub with another clock are as old as this hub knows them to be: it
// compacts to them neither earlier nor later.
func TestClocksOfHubsDoNotChangeTheHistory(t *testing.T) {
	for name, c := range map[string]struct {
		ahead   time.Duration // of the clock of the hub that has made the mark
		standby bool          // this hub has seen the mark before it leads
		want    string        // passes with a compaction, one for each half of the history
	}{
		"the same":        {0, false, "[2]"},
		"an hour behind":  {-time.Hour, false, "[2]"},
		"an hour ahead":   {time.Hour, false, "[2]"},
		"known for long":  {time.Hour, true, "[0]"},
		"of an older run": {-2 * clockError, false, "[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRig(t)
			f, now, history := b.hub.main, time.Now(), b.hub.config.History
			revision := b.etcd.Write(pod("a"), "value")
			if err := f.saveMarks(t.Context(), marks{List: []mark{{Time: now.Add(c.ahead), Revision: revision}}}, 0); err != nil {
				t.Fatal(err)
			}
			if c.standby {
				if err := f.noteMarksAt(t.Context(), now.Add(-history)); err != nil {
					t.Fatal(err)
				}
			}
			var compactions []int
			for i, compacted := 0, int64(0); i < 3; i++ {
				if err := f.compactAt(t.Context(), now.Add(time.Duration(i)*history/2)); err != nil {
					t.Fatal(err)
				}
				saved, _, err := f.loadMarks(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if saved.Compacted > compacted {
					compacted = saved.Compacted
					compactions = append(compactions, i)
				}
			}
			if got := fmt.Sprint(compactions); got != c.want {
				t.Errorf("compactions in the passes %s, want %s", got, c.want)
			}
		})
	}
}
