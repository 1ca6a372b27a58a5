// Package reads serves get, list and watch. It implements the tables of the specification
// with store requests and encodes the results in the negotiated form. Lists are streamed
// page by page and watches event by event, so that neither is in memory as a whole. It
// never writes. It serves "Read consistency", "Chunked lists", "Watch procedure" and
// "Watch events".
package reads

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Config configures the handlers.
type Config struct {
	Store      services.Reader
	Codec      *wire.Codec
	Feeds      *feed.Feeds
	Tokens     *Tokens
	Vocabulary vocabulary.Vocabulary
	// TokenLifetime is how long a chunked list may take.
	TokenLifetime time.Duration
	// WatchTimeout is the minimum duration of a watch that sets no timeout.
	WatchTimeout time.Duration
	// Draining is cancelled when watches must end.
	Draining context.Context
	// Costs records how large collections are; nil for none.
	Costs *fairness.Costs
}

// Handlers serve reads.
type Handlers struct {
	Config
	// CustomSince is the first revision at which objects of custom types are at their
	// current keys. Lists and watches of them at earlier revisions have expired,
	// because the store would not find those objects. It is set before the first request
	// is served.
	CustomSince int64
	// Watches are the watches in progress.
	Watches *watches.Registry
	open    atomic.Int64
	pacer   pacer
}

// expired reports whether the state at a revision is unavailable because the objects of
// the type have been relocated since.
func (h *Handlers) expired(r *request.Request, revision int64) bool {
	return r.Type.Custom && revision > 0 && revision < h.CustomSince
}

// New returns the handlers.
func New(c Config) *Handlers { return &Handlers{Config: c, Watches: watches.New()} }

// OpenWatches returns the number of open watches.
func (h *Handlers) OpenWatches() int64 { return h.open.Load() }
