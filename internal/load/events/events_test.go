package events

import (
	"testing"
	"time"
)

func TestEventsAreReadInPieces(t *testing.T) {
	r := Reader{Sampled: true}
	for _, piece := range []string{`{"object":{"data":{"se`, `nt":"` + "1000" + `"}}}` + "\n" + `{"obj`, "ect\":1}\n{", `"sent":"x"}`} {
		r.Take([]byte(piece))
	}
	if string(r.Last) != `{"object":1}` || r.Count != 2 || len(r.Latencies) != 1 || string(r.line) != `{"sent":"x"}` {
		t.Errorf("got %d events, %d latencies, rest %q", r.Count, len(r.Latencies), r.line)
	}
	if r.Take(nil); !r.Ended || len(r.line) > 0 {
		t.Errorf("after the end: ended %v, rest %q", r.Ended, r.line)
	}
}

// TestLatencies: a time counts once, and not in a deletion.
func TestLatencies(t *testing.T) {
	recorded := 0
	r := Reader{Sampled: true, Record: func(time.Duration) { recorded++ }}
	for _, event := range []string{`{"type":"ADDED","object":{"sent":"1"}}`, `{"type":"MODIFIED","object":{"sent":"1"}}`, `{"type":"MODIFIED","object":{"sent":"2"}}`,
		`{"type":"DELETED","object":{"sent":"3"}}`, `{"type":"ADDED","object":{}}`} {
		r.Take([]byte(event + "\n"))
	}
	if recorded != 2 || r.Count != 5 || len(r.Latencies) > 0 {
		t.Errorf("%d latencies of %d events", recorded, r.Count)
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{`{"metadata":{"resourceVersion":"17"},"items":[{"resourceVersion": "4"}]}`: "17", `{}`: ""} {
		if got := Version([]byte(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
