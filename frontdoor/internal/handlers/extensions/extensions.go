// Package extensions serves the group versions that other servers serve: the APIServices with a service. It
// proxies requests to them, checks whether they are available, and collects their discovery documents. Which of
// their requests are allowed is decided before, as for every resource; admission is up to the extension. A
// group version that is built in is never proxied. It serves "Groups and paths" of the specification.
package extensions

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/reload"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// seatWait is how long a request may wait for a seat of its extension.
const seatWait = 10 * time.Second

// Config configures Handlers.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store
	Source     changes.Source
	Writes     *writes.Handlers
	// Connections proxy requests.
	Connections *connect.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Identity is the client certificate of the front door; nil for none.
	Identity *reload.Files[*tls.Certificate]
	// Services find the servers of extensions.
	Services locate.Locator
	// Seats is the number of concurrent requests to one extension.
	Seats int
	// Hidden are the headers with which an authenticating proxy names users.
	Hidden []string
	// Ledger counts the documents of extensions while they are read.
	Ledger *ledger.Ledger
	Log    *slog.Logger
}

// Handlers serve the extensions.
type Handlers struct {
	Config
	mirror  *changes.Mirror[registration]
	table   atomic.Pointer[table]
	metrics *metrics
	// changed holds a signal after the extensions have changed.
	changed chan struct{}
	now     func() time.Time
	// parsing is held while documents are parsed: that takes a multiple of them, so that one is parsed at a time.
	parsing sync.Mutex
}

// table holds the extensions by group version.
type table map[[2]string]*extension

// New returns handlers that know no extension until they run.
func New(c Config) *Handlers {
	h := &Handlers{Config: c, changed: make(chan struct{}, 1), now: time.Now}
	h.table.Store(&table{})
	h.metrics = newMetrics(h)
	h.mirror = changes.NewMirror(changes.MirrorConfig[registration]{Source: c.Source, Store: c.Store, Log: c.Log,
		GroupResource: h.resource(), Decode: decode, Keep: true, Changed: func() {
			now := h.mirror.Now()
			h.learn(append(now.List(""), unread(now.Unread(""))...))
		}})
	return h
}

// resource returns the type of APIServices.
func (h *Handlers) resource() resource.GroupResource {
	return resource.GroupResource{Group: h.Vocabulary.Group("apiregistration."), Resource: "apiservices"}
}

// Follow follows the APIServices until ctx ends, and then returns nil.
func (h *Handlers) Follow(ctx context.Context) error { return h.mirror.Run(ctx) }

// Ready is closed once all APIServices are known.
func (h *Handlers) Ready() <-chan struct{} { return h.mirror.Ready() }

// learn replaces the extensions. What is kept of an extension survives changes of its
// object.
func (h *Handlers) learn(registered []registration) {
	before, after := *h.table.Load(), table{}
	for _, r := range registered {
		x := &extension{registration: r, handlers: h}
		id := [2]string{r.group, r.version}
		if old := before[id]; old != nil && old.uid == r.uid {
			x.kept = old.kept
		} else {
			x.kept = &kept{seats: inflight.New(h.Seats, seatWait)}
		}
		after[id] = x
	}
	h.table.Store(&after)
	for id, old := range before {
		if now := after[id]; now == nil || now.kept != old.kept {
			old.forget()
			h.metrics.forget(old.name)
		}
	}
	h.signal()
}

// all returns the extensions, ordered by name. It omits those of built-in group versions, which are not
// proxied.
func (h *Handlers) all() []*extension {
	types := h.Engine().Types
	found := slices.DeleteFunc(slices.Collect(maps.Values(*h.table.Load())), func(x *extension) bool {
		return x.local || types.BuiltInVersion(x.group, x.version)
	})
	slices.SortFunc(found, func(a, b *extension) int { return strings.Compare(a.name, b.name) })
	return found
}

// Route makes the extension that a path belongs to serve the request, if there is one.
func (h *Handlers) Route(r *request.Request) {
	group, version, ok := r.GroupVersion()
	if !ok {
		return
	}
	x := (*h.table.Load())[[2]string{group, version}]
	if x != nil && !x.local && !h.Engine().Types.BuiltInVersion(group, version) {
		r.Extension = true
		r.Extend(x.serve, x.seats)
	}
}

// identity returns the client certificate; nil for none.
func (h *Handlers) identity() *tls.Certificate {
	if h.Identity == nil {
		return nil
	}
	return h.Identity.Get()
}
