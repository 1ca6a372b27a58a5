package linear

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

const never = math.MaxInt64

// at sets the times of an operation, in milliseconds.
func at(call, end int64, o Operation) Operation {
	o.Call, o.Return = time.Duration(call), time.Duration(end)
	if end == never {
		o.Result = Unknown
	}
	o.Key = "k"
	return o
}

func TestCheckTellsGoodFromBad(t *testing.T) {
	create := at(0, 10, Operation{Kind: Create, Value: "1", Result: Done})
	lost := at(20, never, Operation{Kind: Update, Expected: "1", Value: "2"})
	read := func(call int64, value string) Operation {
		return at(call, call+5, Operation{Kind: Read, Value: value, Result: Done})
	}
	for _, c := range []struct {
		name    string
		history []Operation
		want    bool
	}{
		{"a read sees the write before it", []Operation{create, read(11, "1")}, true},
		{"a stale read", []Operation{create, read(11, "")}, false},
		{"a read beside the write sees either", []Operation{create, read(2, ""), read(4, "1")}, true},
		{"reads go back", []Operation{create, read(2, "1"), read(8, "")}, false},
		{"a lost write takes effect late", []Operation{create, lost, read(30, "1"), read(40, "2")}, true},
		{"a lost write never takes effect", []Operation{create, lost, read(30, "1"), read(400, "1")}, true},
		{"a lost write takes effect and goes", []Operation{create, lost, read(30, "2"), read(40, "1")}, false},
		{"a lost write before its call", []Operation{create, read(12, "2"), lost}, false},
		{"a conflict that was applied", []Operation{create,
			at(20, 30, Operation{Kind: Update, Expected: "1", Value: "2", Result: Conflict}), read(40, "2")}, false},
		{"a conflict after another write", []Operation{create, lost,
			at(50, 60, Operation{Kind: Update, Expected: "1", Value: "3", Result: Conflict}), read(70, "2")}, true},
		{"a conflict without another write", []Operation{create,
			at(50, 60, Operation{Kind: Update, Expected: "1", Value: "3", Result: Conflict})}, false},
		{"two updates of one version", []Operation{create,
			at(20, 30, Operation{Kind: Update, Expected: "1", Value: "2", Result: Done}),
			at(22, 32, Operation{Kind: Update, Expected: "1", Value: "3", Result: Done})}, false},
		{"two creates", []Operation{create, at(0, 10, Operation{Kind: Create, Value: "9", Result: Done})}, false},
		{"deleted and made again", []Operation{create, at(20, 30, Operation{Kind: Delete, Result: Done}),
			at(40, 50, Operation{Kind: Create, Value: "2", Result: Done}), read(60, "2")}, true},
		{"a lost delete explains a second create", []Operation{create, at(20, never, Operation{Kind: Delete}),
			at(40, 50, Operation{Kind: Create, Value: "2", Result: Done})}, true},
		{"a patch that was applied twice around another write", []Operation{create,
			at(20, never, Operation{Kind: Patch, Value: "p"}), read(30, "p"),
			at(40, 50, Operation{Kind: Patch, Value: "q", Result: Done}), read(60, "p")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Check(c.history, time.Minute)
			if v.Undecided || v.Linearizable != c.want {
				t.Errorf("got %v (undecided: %v), want %v", v.Linearizable, v.Undecided, c.want)
			}
			var page bytes.Buffer
			if err := v.Visualize(&page); err != nil || page.Len() == 0 {
				t.Errorf("no page: %v", err)
			}
		})
	}
}

func TestHistoryLeavesUnknownWritesOpen(t *testing.T) {
	h := NewHistory()
	h.Add(Operation{Kind: Patch, Key: "a", Value: "1"})
	h.Add(Operation{Kind: Read, Key: "a"})
	if got := h.Operations(); len(got) != 1 || got[0].Return != never {
		t.Errorf("got %+v, want the write without an end, and not the read", got)
	}
}

func TestCheckWatchesFinds(t *testing.T) {
	all := []Event{{1, "a", "x"}, {2, "b", "y"}, {3, "a", ""}, {5, "a", "z"}}
	whole := Watch{From: 0, Through: 5, Events: all}
	list := func(revision int64, a, b string) []Snapshot {
		return []Snapshot{{revision, map[string]string{"a": a, "b": b}}}
	}
	for _, c := range []struct {
		name         string
		watches      []Watch
		acknowledged []Event
		lists        []Snapshot
		want         string // part of the problem; empty when there is none
	}{
		{"nothing", []Watch{whole, {From: 2, Through: 5, Events: all[2:]}}, all, list(4, "", "y"), ""},
		{"a gap", []Watch{whole, {Through: 5, Events: []Event{all[0], all[2], all[3]}}}, nil, nil, "missed {Revision:2"},
		{"a duplicate", []Watch{{Through: 5, Events: []Event{all[0], all[0]}}}, nil, nil, "after revision 1"},
		{"a step back", []Watch{{Through: 5, Events: []Event{all[1], all[0]}}}, nil, nil, "after revision 2"},
		{"a write applied twice", []Watch{{Through: 3, Events: []Event{{1, "a", "x"}, {2, "a", "y"}, {3, "a", "x"}}}}, nil, nil, "took effect before"},
		{"another value", []Watch{whole, {Through: 1, Events: []Event{{1, "a", "other"}}}}, nil, nil, "another one"},
		{"a write that no watch saw", []Watch{whole}, []Event{{4, "b", "w"}}, nil, "a client received"},
		{"a stale list", []Watch{whole}, nil, list(5, "", "y"), "the list at revision 5"},
		{"a list from the future", []Watch{whole}, nil, list(1, "x", "y"), ""}, // b is not known at 1
		{"a torn list", []Watch{whole}, nil, list(3, "x", "y"), "the list at revision 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := strings.Join(CheckWatches(c.watches, c.acknowledged, c.lists), "\n")
			if (problems == "") != (c.want == "") || !strings.Contains(problems, c.want) {
				t.Errorf("got %q, want %q", problems, c.want)
			}
		})
	}
}
