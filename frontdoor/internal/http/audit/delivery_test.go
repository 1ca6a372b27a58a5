package audit

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spf13/pflag"
)

// delivering returns the delivery that flags of a prefix say.
func delivering(t *testing.T, flags ...string) *delivery {
	t.Helper()
	d := &delivery{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	d.register(fs, webhookPrefix, modeBatch)
	for i, flag := range flags {
		flags[i] = "--" + webhookPrefix + flag
	}
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDeliveryFlags: wrong values of the flags are refused with the name of the flag.
func TestDeliveryFlags(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"", ""}, {"mode=blocking", ""}, {"mode=blocking-strict", ""}, {"version=audit.k8s.io/v1", ""}, {"batch-throttle-qps=5", ""},
		{"batch-throttle-qps=5 batch-throttle-burst=0", "--audit-webhook-batch-throttle-burst"}, {"batch-throttle-qps=5 batch-throttle-burst=0 batch-throttle-enable=false", ""},
		{"mode=slow", "--audit-webhook-mode"}, {"version=audit.k8s.io/v1beta1", "--audit-webhook-version"}, {"batch-buffer-size=0", "--audit-webhook-batch-buffer-size"},
		{"batch-max-size=0", "--audit-webhook-batch-max-size"}, {"batch-max-wait=-1s", "--audit-webhook-batch-max-wait"}, {"batch-throttle-qps=-1", "--audit-webhook-batch-throttle-qps"},
		{"truncate-max-event-size=1", ""}, {"truncate-enabled truncate-max-event-size=1", "--audit-webhook-truncate-max-event-size"},
		{"truncate-enabled truncate-max-batch-size=5000", "--audit-webhook-truncate-max-batch-size"},
	} {
		err := delivering(t, strings.Fields(c.flags)...).check(webhookPrefix, "audit.k8s.io/v1")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want+":") {
			t.Errorf("%s: %v, want %s", c.flags, err, c.want)
		}
	}
}

// TestBatchFlags: the queue holds, and the batches have, what the flags say.
func TestBatchFlags(t *testing.T) {
	for _, c := range []struct {
		flags string
		lines []string // sizes as that of a text
		want  []int    // events of the batches
		lost  float64
	}{
		{"batch-max-size=2", []string{"a", "b", "c", "d", "e"}, []int{2, 2, 1}, 0},
		{"batch-buffer-size=3", []string{"a", "b", "c", "d", "e"}, []int{3}, 2},
		{"truncate-max-batch-size=1", []string{"a", "b"}, []int{2}, 0},
		{"truncate-enabled truncate-max-event-size=4096 truncate-max-batch-size=5000", []string{strings.Repeat("a", 3000), strings.Repeat("b", 2000), "c", strings.Repeat("d", 5000), "e", "f"}, []int{2, 1, 1, 2}, 0},
		{"batch-throttle-qps=1000 batch-max-size=1", []string{"a", "b"}, []int{1, 1}, 0},
	} {
		d := delivering(t, strings.Fields(c.flags)...)
		if err := d.check(webhookPrefix, ""); err != nil {
			t.Fatal(err)
		}
		var got []int
		var text, want string
		q := d.queue(dropped(), func(_ context.Context, _ <-chan struct{}, batch [][]byte) int {
			got = append(got, len(batch))
			for _, line := range batch {
				text += string(line)
			}
			return len(batch)
		})
		for _, line := range c.lines {
			if q.add([]byte(line)) {
				want += line
			}
		}
		go func() { _ = q.run(t.Context()) }()
		q.close(t.Context())
		if lost := testutil.ToFloat64(q.dropped); lost != c.lost || text != want || !slices.Equal(got, c.want) {
			t.Errorf("%s: batches %v, want %v; %v lost", c.flags, got, c.want, lost)
		}
	}
}

// TestThrottledStops: a queue that stops sends at once what its limit has held back.
func TestThrottledStops(t *testing.T) {
	d := delivering(t, "batch-throttle-qps=0.0001", "batch-throttle-burst=1", "batch-max-size=1")
	first := make(chan struct{}, 9)
	q := d.queue(dropped(), func(_ context.Context, _ <-chan struct{}, batch [][]byte) int {
		first <- struct{}{}
		return len(batch)
	})
	for _, line := range []string{"a", "b", "c"} {
		q.add([]byte(line))
	}
	go func() { _ = q.run(t.Context()) }()
	<-first
	q.close(t.Context())
	if len(first) != 2 || testutil.ToFloat64(q.dropped) != 0 {
		t.Errorf("%d batches after the stop", len(first))
	}
}

// TestTruncate: an event that is too long for an output loses its bodies there only, and is dropped if that is
// not enough.
func TestTruncate(t *testing.T) {
	var lines, whole []string
	lost := dropped()
	l := &Log{apiVersion: "audit/v1", outputs: []output{
		{most: 4096, dropped: lost, strict: true, take: func(line []byte) bool { lines = append(lines, string(line)); return true }},
		{take: func(line []byte) bool { whole = append(whole, string(line)); return true }},
	}}
	body, _ := json.Marshal(strings.Repeat("x", 5000))
	o := Outcome{Stage: ResponseComplete, Record: &Record{ID: "one", Received: time.Unix(0, 0)}, Request: httptest.NewRequest("GET", "/api", nil), Status: 200}
	o.Bodies.Request = body
	if !l.Write(o) || len(lines) != 1 || strings.Contains(lines[0], "xxx") || !strings.Contains(lines[0], `"audit/truncated":"true"`) ||
		len(whole) != 1 || !strings.Contains(whole[0], "xxx") || strings.Contains(whole[0], "truncated") {
		t.Errorf("%q beside %.100q", lines, whole)
	}
	l.outputs[0].most = 10
	if l.Write(o) || len(lines) != 1 || len(whole) != 2 || testutil.ToFloat64(lost) != 1 {
		t.Errorf("%q, %v lost", lines, testutil.ToFloat64(lost))
	}
}
