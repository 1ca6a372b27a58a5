package fairness

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// sorted returns the levels by name.
func (s *Shares) sorted() []*level {
	s.mu.Lock()
	defer s.mu.Unlock()
	levels := make([]*level, 0, len(s.levels))
	for _, l := range s.levels {
		levels = append(levels, l)
	}
	slices.SortFunc(levels, func(a, b *level) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return levels
}

// Dumps returns the debug endpoints by the last part of their path, in the format of Kubernetes.
func (s *Shares) Dumps() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"dump_priority_levels": func(w http.ResponseWriter, _ *http.Request) {
			s.dump(w, []string{"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
				"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"}, (*level).dumpSelf)
		},
		"dump_queues": func(w http.ResponseWriter, _ *http.Request) {
			s.dump(w, []string{"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
				"InitialSeatsSum"}, (*level).dumpQueues)
		},
		"dump_requests": func(w http.ResponseWriter, r *http.Request) {
			head := []string{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
				"InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}
			details := r.URL.Query().Get("includeRequestDetails") != ""
			if details {
				head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
			}
			s.dump(w, head, func(l *level, row func(...string)) { l.dumpRequests(details, row) })
		},
	}
}

// dump writes a table.
func (s *Shares) dump(w http.ResponseWriter, head []string, rows func(*level, func(...string))) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	table := tabwriter.NewWriter(w, 8, 0, 1, ' ', 0)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = printable(cell)
		}
		_, _ = io.WriteString(table, strings.Join(cells, ",\t")+"\n") // the client may have left
	}
	row(head...)
	for _, l := range s.sorted() {
		l.mu.Lock()
		var all [][]string
		rows(l, func(cells ...string) { all = append(all, cells) })
		l.mu.Unlock()
		for _, cells := range all {
			row(cells...)
		}
	}
	_ = table.Flush()
}

// printable keeps what clients have written from making rows or columns of its own.
func printable(cell string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == ',' {
			return '?'
		}
		return r
	}, cell)
}

func (l *level) dumpSelf(row func(...string)) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	row(l.spec.Name, strconv.Itoa(len(l.pending)), strconv.FormatBool(l.executing.n+l.waiting == 0), "false", strconv.Itoa(l.waiting),
		strconv.Itoa(l.executing.n), number(l.counts.dispatched), number(l.counts.rejected), number(l.counts.timedOut), number(l.counts.cancelled))
}

// dumpQueues writes a row for each queue that has been used.
func (l *level) dumpQueues(row func(...string)) {
	for _, q := range l.queues {
		if q != nil {
			row(l.spec.Name, strconv.Itoa(q.index), strconv.Itoa(q.waiting.n), strconv.Itoa(q.executing), strconv.Itoa(q.inUse),
				strconv.FormatFloat(q.account, 'f', 8, 64)+"ss", strconv.Itoa(q.waitingSeats))
		}
	}
}

func (l *level) dumpRequests(details bool, row func(...string)) {
	one := func(s *Seat, place int) {
		index := -1
		if s.queue != nil {
			index = s.queue.index
		}
		began := "0001-01-01T00:00:00Z"
		if !s.began.IsZero() {
			began = s.began.UTC().Format(time.RFC3339Nano)
		}
		cells := []string{l.spec.Name, s.flow.Name, strconv.Itoa(index), strconv.Itoa(place), s.distinguisher, s.arrived.UTC().Format(time.RFC3339Nano),
			strconv.Itoa(s.width), "0", "0s", began}
		if details {
			a := &s.about
			version := strings.TrimPrefix(a.Group+"/"+a.Version, "/")
			cells = append(cells, a.User.Name, a.Verb, a.Path, a.Namespace, a.Name, version, a.Resource, a.Subresource)
		}
		row(cells...)
	}
	queues := slices.Clone(l.pending)
	slices.SortFunc(queues, func(a, b *queue) int { return cmp.Compare(a.index, b.index) })
	for _, q := range queues {
		place := 0
		for s := q.waiting.first; s != nil; s = s.next {
			one(s, place)
			place++
		}
	}
	for s := l.executing.first; s != nil; s = s.next {
		one(s, -1)
	}
}
