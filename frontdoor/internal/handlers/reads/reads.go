// Package reads serves get, list and watch. It turns the tables of the
// specification into questions to the store, and what comes back into the form
// that the client asked for; a list goes page by page and a watch as it happens,
// so that neither is ever held as a whole. It never writes. It serves "Read
// consistency", "Chunked lists", "Watch procedure" and "Watch events".
package reads

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Config is what the handlers need.
type Config struct {
	Store      services.Reader
	Codec      *wire.Codec
	Feeds      *feed.Feeds
	Tokens     *Tokens
	Vocabulary vocabulary.Vocabulary
	// TokenLifetime is how long a chunked list may take.
	TokenLifetime time.Duration
	// WatchTimeout is the least time after which a watch without a timeout ends.
	WatchTimeout time.Duration
	// Draining is done when watches shall end.
	Draining context.Context
}

// Handlers serve reads.
type Handlers struct {
	Config
	// CustomSince is the first revision at which the objects of custom types are where
	// they are now. Lists and watches of them at earlier revisions have expired: what
	// the store knows of those is not what was there. It is set before anything is
	// served.
	CustomSince int64
	open        atomic.Int64
	flushCost   costEstimate
}

// expired reports whether what was there at a revision is not known any more because
// the objects of the type have been moved since.
func (h *Handlers) expired(r *request.Request, revision int64) bool {
	return r.Type.Custom && revision > 0 && revision < h.CustomSince
}

// New returns the handlers.
func New(c Config) *Handlers { return &Handlers{Config: c} }

// OpenWatches returns how many watches are open now.
func (h *Handlers) OpenWatches() int64 { return h.open.Load() }
