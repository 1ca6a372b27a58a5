package linear

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Event is one change that a watch has delivered.
type Event struct {
	Revision   int64
	Key, Value string // the value is empty for a deletion
}

// Watch holds the events of one watcher of all keys, across resumed connections.
type Watch struct {
	// From is the revision after which it began, Through the revision up to which it is
	// complete.
	From, Through int64
	Events        []Event
}

// Snapshot is a list: the value of each key at a revision.
type Snapshot struct {
	Revision int64
	Values   map[string]string
}

// maxProblems bounds the number of problems that a check returns.
const maxProblems = 10

// CheckWatches compares the events of all watchers with each other, with the versions in
// responses to writes and with lists. It returns the inconsistencies: gaps, duplicates,
// events out of order, and unknown versions.
func CheckWatches(watches []Watch, acknowledged []Event, lists []Snapshot) (problems []string) {
	report := func(format string, args ...any) {
		if len(problems) < maxProblems {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	truth := merge(watches, report)
	checkOnce(truth, report)
	for i, w := range watches {
		checkOrder(i, w, report)
		checkWhole(i, w, truth, report)
	}
	from, through := covered(watches)
	seen := map[int64]Event{}
	for _, e := range truth {
		seen[e.Revision] = e
	}
	for _, e := range acknowledged {
		if e.Revision <= from || e.Revision > through {
			continue
		}
		if got, ok := seen[e.Revision]; !ok || got != e {
			report("a client received %+v; the watches show %+v (%v)", e, got, ok)
		}
	}
	for _, l := range lists {
		if l.Revision > from && l.Revision <= through {
			checkSnapshot(l, truth, report)
		}
	}
	return problems
}

// merge merges the events of all watches into one history.
func merge(watches []Watch, report func(string, ...any)) []Event {
	all := map[int64]Event{}
	for i, w := range watches {
		for _, e := range w.Events {
			if other, ok := all[e.Revision]; ok && other != e {
				report("watch %d saw %+v, another one %+v", i, e, other)
			}
			all[e.Revision] = e
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
}

// checkOnce reports values that occur twice: values are unique to writes, so the write took
// effect twice.
func checkOnce(truth []Event, report func(string, ...any)) {
	seen := map[string]bool{}
	for _, e := range truth {
		if e.Value != "" && seen[e.Value] {
			report("%+v took effect before", e)
		}
		seen[e.Value] = true
	}
}

func checkOrder(i int, w Watch, report func(string, ...any)) {
	last := w.From
	for _, e := range w.Events {
		if e.Revision <= last {
			report("watch %d saw %+v after revision %d", i, e, last)
		}
		last = e.Revision
	}
}

// checkWhole reports the events that one watcher has missed.
func checkWhole(i int, w Watch, truth []Event, report func(string, ...any)) {
	seen := map[int64]bool{}
	for _, e := range w.Events {
		seen[e.Revision] = true
	}
	for _, e := range truth {
		if e.Revision > w.From && e.Revision <= w.Through && !seen[e.Revision] {
			report("watch %d from %d missed %+v", i, w.From, e)
		}
	}
}

// covered returns the range of revisions in which some watcher saw every change.
func covered(watches []Watch) (from, through int64) {
	for i, w := range watches {
		if i == 0 || w.From < from {
			from = w.From
		}
		through = max(through, w.Through)
	}
	return from, through
}

// checkSnapshot compares a list with the history up to its revision. Keys that are not in
// the history by then are ignored.
func checkSnapshot(l Snapshot, truth []Event, report func(string, ...any)) {
	values := map[string]string{}
	for _, e := range truth {
		if e.Revision <= l.Revision {
			values[e.Key] = e.Value
		}
	}
	for key, want := range values {
		if got := l.Values[key]; got != want {
			report("the list at revision %d holds %s=%q, the watches show %q", l.Revision, key, got, want)
		}
	}
}
