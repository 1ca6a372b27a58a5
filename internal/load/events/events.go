// Package events counts the events of a watch, which are lines, and measures the latency of
// some. It parses nothing else, since that would measure the client.
package events

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Stamp is what precedes the scheduled time of a change, in nanoseconds, in its event.
const Stamp = `"sent":"`

// Reader reads the events of one watch.
type Reader struct {
	// Sampled is set if the reader measures latency. Record receives it; if it is nil, Latencies.
	Sampled   bool
	Record    func(time.Duration)
	Ended     bool // the watch has
	Count     int
	Bytes     int64
	Latencies []time.Duration
	Last      []byte // complete event
	line      []byte // received part of the next event
	recent    [64]int64
	next      int // index in recent
}

// Take reads a piece of the stream; nil is its end.
func (r *Reader) Take(piece []byte) {
	if piece == nil {
		r.Ended = true
		r.line = r.line[:0]
		return
	}
	r.Bytes += int64(len(piece))
	now := time.Now()
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			r.line = append(r.line, piece...)
			return
		}
		r.line, r.Last = r.Last[:0], append(r.line, piece[:end]...)
		r.Count++
		if sent, ok := r.sentAt(); ok {
			r.record(now.Sub(sent))
		}
		piece = piece[end+1:]
	}
}

func (r *Reader) record(latency time.Duration) {
	if r.Record != nil {
		r.Record(latency)
		return
	}
	r.Latencies = append(r.Latencies, latency)
}

// sentAt returns the scheduled time in the last event, if the reader is sampled. Deletions have
// the time of an earlier change, and so have changes of others, such as controllers.
func (r *Reader) sentAt() (time.Time, bool) {
	if !r.Sampled || bytes.HasPrefix(r.Last, []byte(`{"type":"DELETED"`)) {
		return time.Time{}, false
	}
	_, after, found := bytes.Cut(r.Last, []byte(Stamp))
	digits, _, ended := bytes.Cut(after, []byte{'"'})
	sent, err := strconv.ParseInt(string(digits), 10, 64)
	if !found || !ended || err != nil || slices.Contains(r.recent[:], sent) {
		return time.Time{}, false
	}
	r.recent[r.next] = sent
	r.next = (r.next + 1) % len(r.recent)
	return time.Unix(0, sent), true
}

var resourceVersion = regexp.MustCompile(`"resourceVersion":\s*"([^"]*)"`)

// Version returns the first resourceVersion in a response or an event; empty if it has none.
func Version(text []byte) string {
	found := resourceVersion.FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}
