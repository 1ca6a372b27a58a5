package frontdoor

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/convert"
	"github.com/portico-platform/portico/frontdoor/internal/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/feed"
	"github.com/portico-platform/portico/frontdoor/internal/merge"
	"github.com/portico-platform/portico/frontdoor/internal/schema"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/bus"
	"github.com/portico-platform/portico/services/changes"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// bodyLimit is the largest body of a request that is read.
	bodyLimit = 3 << 20
	// placeWait is how long a request waits for its turn.
	placeWait = 30 * time.Second
)

// door is a running front door.
type door struct {
	log        *slog.Logger
	vocabulary vocabulary.Vocabulary
	metrics    *requestMetrics
	auditLog   *auditLog // nil: none

	authn      services.Authn
	authz      services.Authz
	admission  services.Admission
	storage    services.Store
	identities *identities

	types    *catalogue.Catalogue
	heads    map[*catalogue.Type][]byte
	versions convert.Versions
	schemas  *schema.Engine
	merge    *merge.Engine
	codec    *wire.Codec
	feeds    *feed.Feeds
	tokens   *tokens

	reads, writes *fairness.Limiter
	plainPaths    map[string]func(http.ResponseWriter, *http.Request) error
	openWatches   atomic.Int64
	draining      context.Context // done when watches shall end
	drain         context.CancelFunc

	bodyLimit     int64
	watchTimeout  time.Duration
	tokenLifetime time.Duration
}

// parts are what start has made before the door.
type parts struct {
	types *catalogue.Catalogue
	gates gates
}

// newDoor joins the parts to a door that can serve.
func (c *config) newDoor(ctx context.Context, n *run.Node, p parts) (*door, error) {
	d := &door{
		log: n.Log, vocabulary: n.Vocabulary, types: p.types, heads: map[*catalogue.Type][]byte{},
		versions: convert.New(n.Vocabulary), codec: wire.New(wire.Config{Vocabulary: n.Vocabulary}),
		identities: newIdentities(),
		reads:      fairness.New(c.reads, placeWait), writes: fairness.New(c.writes, placeWait),
		bodyLimit: bodyLimit, watchTimeout: c.watchTimeout, tokenLifetime: c.watchHistory,
	}
	d.draining, d.drain = context.WithCancel(context.Background())
	d.metrics = newRequestMetrics(n.Metrics, func() float64 { return float64(d.openWatches.Load()) })
	for _, g := range p.types.Groups() {
		for _, v := range g.Versions {
			for _, t := range v.Types {
				d.heads[t] = headOf(t)
			}
		}
	}
	var err error
	if d.schemas, err = schema.New(p.types, n.Vocabulary); err != nil {
		return nil, err
	}
	d.merge = merge.New(merge.Options{Vocabulary: n.Vocabulary, Types: p.types, WithoutApply: !p.gates.serverSideApply})
	if d.auditLog, err = c.openAuditLog(n); err != nil {
		return nil, err
	}
	if err := d.reach(ctx, n, c); err != nil {
		return nil, err
	}
	d.plainPaths = d.publish(n, p.types)
	return d, nil
}

// reach finds the services behind the door.
func (d *door) reach(ctx context.Context, n *run.Node, c *config) (err error) {
	if d.authn, err = rpc.Authn.Use(ctx, n); err != nil {
		return err
	}
	if d.authz, err = rpc.Authz.Use(ctx, n); err != nil {
		return err
	}
	if d.admission, err = rpc.Admission.Use(ctx, n); err != nil {
		return err
	}
	if d.storage, err = rpc.Store.Use(ctx, n); err != nil {
		return err
	}
	hub, err := rpc.WatchHub.Use(ctx, n)
	if err != nil {
		return err
	}
	conn, err := bus.Conn.Use(ctx, n)
	if err != nil {
		return err
	}
	feedContext, stop := context.WithCancel(context.Background())
	n.OnStop(func(context.Context) { stop() })
	d.feeds = feed.New(feedContext, feed.Config{Source: changes.Source{Bus: conn, Hub: hub}, Head: d.storage.Revision,
		Bytes: c.feedBytes, Age: c.watchHistory})
	n.Health.Add(run.Check{Name: "storage", Probe: func(ctx context.Context) error {
		_, err := d.storage.Revision(ctx)
		return err
	}})
	key, err := d.sealingKey(ctx)
	if err != nil {
		return err
	}
	d.tokens, err = newTokens(key)
	return err
}

// publish returns what serves the paths that name no resource, by their first part.
func (d *door) publish(n *run.Node, types *catalogue.Catalogue) map[string]func(http.ResponseWriter, *http.Request) error {
	documents := discovery.New(discovery.Options{Catalogue: types, Vocabulary: n.Vocabulary, Version: discovery.Release(""),
		OtherPaths: []string{"/healthz", "/livez", "/readyz", "/metrics"}})
	checks := health{n.Health}.serve
	scrape := promhttp.HandlerFor(n.Metrics, promhttp.HandlerOpts{})
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"": documents.Serve, "api": documents.Serve, "apis": documents.Serve, "openapi": documents.Serve, "version": documents.Serve,
		"healthz": checks, "livez": checks, "readyz": checks,
		"metrics": func(w http.ResponseWriter, r *http.Request) error {
			scrape.ServeHTTP(w, r)
			return nil
		},
	}
}
