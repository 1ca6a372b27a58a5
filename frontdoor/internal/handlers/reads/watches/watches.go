// Package watches knows the watches in progress of a front door: who watches what, how much was
// sent, and whether the client accepts it. It can end one.
package watches

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services/kit/monotonic"
)

// Watch describes a watch.
type Watch struct {
	// ID is unique among all front doors. It begins with FrontDoor, the Instance of its front door.
	ID            string    `json:"id"`
	FrontDoor     string    `json:"frontDoor"`
	User          string    `json:"user"`
	UserAgent     string    `json:"userAgent,omitempty"`
	Client        string    `json:"client,omitempty"`
	Group         string    `json:"group,omitempty"`
	Version       string    `json:"version"`
	Resource      string    `json:"resource"`
	Namespace     string    `json:"namespace,omitempty"`
	LabelSelector string    `json:"labelSelector,omitempty"`
	FieldSelector string    `json:"fieldSelector,omitempty"`
	Since         time.Time `json:"since"`
	// Bytes is how many bytes were sent, before compression, and Revision the one up to which
	// changes were sent; 0 while the initial state is sent.
	Bytes    int64 `json:"bytes"`
	Revision int64 `json:"revision"`
	// StalledSeconds is how long the client has not accepted what is being sent.
	StalledSeconds float64 `json:"stalledSeconds"`
}

// maxText bounds what a client says about itself.
const maxText = 256

// Registry holds the watches of a front door. It is safe for concurrent use.
type Registry struct {
	prefix  string
	next    atomic.Int64
	mu      sync.Mutex
	entries map[string]*Entry
}

// New returns a registry without watches.
func New() *Registry {
	const length = 8 // 40 random bits
	return &Registry{prefix: strings.ToLower(rand.Text()[:length]), entries: map[string]*Entry{}}
}

// Instance returns what the IDs of the watches of this front door begin with.
func (r *Registry) Instance() string { return r.prefix }

// Entry is a watch in progress. Its methods other than the registry's are called by the one
// goroutine that serves it.
type Entry struct {
	registry *Registry
	watch    Watch
	end      context.CancelCauseFunc
	bytes    atomic.Int64
	revision atomic.Int64
	sending  atomic.Int64 // since when, as monotonic.Now; 0 while nothing is sent
}

// ErrClosed is the cause with which a context ends when its watch is closed.
var ErrClosed = errors.New("the watch was closed by an administrator")

// Open registers a watch. The context that it returns ends when the watch is closed. The caller
// must call Close.
func (r *Registry) Open(ctx context.Context, w Watch) (context.Context, *Entry) {
	w.FrontDoor = r.prefix
	w.ID = w.FrontDoor + "-" + strconv.FormatInt(r.next.Add(1), 10)
	w.Since = time.Now()
	for _, text := range []*string{&w.User, &w.UserAgent, &w.LabelSelector, &w.FieldSelector} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "")
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	e := &Entry{registry: r, watch: w, end: end}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[w.ID] = e
	return ctx, e
}

// Close removes the watch.
func (e *Entry) Close() {
	e.registry.mu.Lock()
	delete(e.registry.entries, e.watch.ID)
	e.registry.mu.Unlock()
	e.end(nil)
}

// Sending is called before bytes are sent, and Sent after all that was sent has been accepted.
func (e *Entry) Sending(bytes int) {
	e.bytes.Add(int64(bytes))
	e.sending.CompareAndSwap(0, monotonic.Now())
}

// Sent is called when the client has accepted everything, up to a revision if it is not 0.
func (e *Entry) Sent(revision int64) {
	e.sending.Store(0)
	if revision > 0 {
		e.revision.Store(revision)
	}
}

// End ends the watch with an ID; false if there is none.
func (r *Registry) End(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[id]
	if ok {
		e.end(ErrClosed)
	}
	return ok
}

// List returns up to limit watches, those that stall first, then those that have sent most, and
// the number of all.
func (r *Registry) List(limit int) (list []Watch, total int) {
	r.mu.Lock()
	for _, e := range r.entries {
		w := e.watch
		w.Bytes, w.Revision = e.bytes.Load(), e.revision.Load()
		if since := e.sending.Load(); since > 0 {
			w.StalledSeconds = monotonic.Since(since).Seconds()
		}
		list = append(list, w)
	}
	r.mu.Unlock()
	return First(list, limit), len(list)
}

// First returns up to limit watches in the order of List. It changes the order of all.
func First(all []Watch, limit int) []Watch {
	slices.SortFunc(all, func(a, b Watch) int {
		return cmp.Or(cmp.Compare(b.StalledSeconds, a.StalledSeconds), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(limit, len(all))]
}
