package frontdoor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/emulation"
	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/prepared"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/componentstatus"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/console"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/extensions"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/feed"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/forwarding"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/legacytokens"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reviews"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceranges"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/subresources"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/http/auditing"
	"github.com/portico-platform/portico/frontdoor/internal/http/authfilters"
	"github.com/portico-platform/portico/frontdoor/internal/http/browsers"
	"github.com/portico-platform/portico/frontdoor/internal/http/compression"
	"github.com/portico-platform/portico/frontdoor/internal/http/pace"
	"github.com/portico-platform/portico/frontdoor/internal/http/requestmetrics"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/slis"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// A body must begin within bodyGrace and then arrive at bodyRate bytes per
	// second. The client must accept each piece of a response within answerStall.
	bodyGrace   = 10 * time.Second
	bodyRate    = 4 << 10
	answerStall = 30 * time.Second
)

// door is a running front door.
type door struct {
	log        *slog.Logger
	vocabulary vocabulary.Vocabulary
	release    release.Release
	metrics    *requestmetrics.Metrics
	tracer     *tracing.Tracer
	audit      auditing.Auditor
	store      services.Store
	admission  services.Admission

	types atomic.Pointer[knowledge]
	// learning is held while types is replaced.
	learning sync.Mutex
	// relearned holds a signal after the types have changed.
	relearned chan struct{}
	access    *authfilters.Control
	tokens    *legacytokens.Recorder
	codec     *wire.Codec
	gates     featuregate.Gates
	reads     *reads.Handlers
	writes    *writes.Handlers
	// ranges maintains the ServiceCIDRs and IPAddresses.
	ranges serviceranges.Keeper
	review *reviews.Handlers
	// actions, components and connections serve requests that are not reads or writes of stored objects.
	actions     *subresources.Handlers
	components  *componentstatus.Handlers
	connections *connect.Handlers
	// extensions serve the group versions of other servers.
	extensions *extensions.Handlers
	forwarding *forwarding.Handlers // of requests for types of other front doors
	operations *operations.Handlers
	router     http.Handler // serves the paths that are no resources
	browsers   *browsers.Headers
	console    *console.Console
	compressor compression.Compressor
	pacer      *pace.Pacer
	drain      context.CancelFunc // ends the watches
	draining   atomic.Bool        // clients are asked to open new connections
	// goawayChance is the fraction of HTTP/2 requests after which their client is asked
	// to open a new connection.
	goawayChance float64
	// requestTimeout bounds every request except watches and connections.
	requestTimeout time.Duration
	// reached is the host and port at which members of the cluster reach this front door; nil until it is known.
	reached atomic.Pointer[string]
}

// address returns reached, or "".
func (d *door) address() string {
	if known := d.reached.Load(); known != nil {
		return *known
	}
	return ""
}

// knowledge is a snapshot of the types that the front door serves.
type knowledge struct {
	engine    *typesystem.Engine
	documents *discovery.Documents
}

// learn replaces the served types by those of a revision. Metrics of removed types are dropped, and their watches end:
// otherwise a user who may create CustomResourceDefinitions could create series and feeds without bound.
func (d *door) learn(e *typesystem.Engine, revision int64) {
	d.learning.Lock()
	defer d.learning.Unlock()
	before := d.types.Load()
	d.publish(e)
	if before == nil || d.metrics == nil {
		return
	}
	select {
	case d.relearned <- struct{}{}:
	default:
	}
	for _, group := range before.engine.Types.Groups() {
		for _, version := range group.Versions {
			for _, t := range version.Types {
				if _, ok := e.Types.Lookup(t.Group, t.Version, t.Resource); !ok {
					d.metrics.Forget(t)
					if e.Types.Stored(t.Key) == nil { // in no version
						d.reads.Feeds.End(t.Key, revision)
					}
				}
			}
		}
	}
}

// publish makes the front door serve types, and the documents about them and the extensions.
// The caller holds d.learning.
func (d *door) publish(e *typesystem.Engine) {
	o := discovery.Options{Catalogue: e.Types, Vocabulary: d.vocabulary,
		Release: d.release, Version: discovery.Version(d.release), OtherPaths: []string{"/healthz", "/livez", "/readyz", "/metrics"}, CBOR: d.gates.On(featuregate.CBOR), Address: d.address}
	if slis.Served(d.release) {
		o.OtherPaths = append(o.OtherPaths, slis.Path)
	}
	if before := d.types.Load(); before != nil {
		o.Before = before.documents
	}
	if d.extensions != nil {
		o.Extensions = d.extensions.Describe()
		o.Union = d.forwarding.Union()
	}
	d.types.Store(&knowledge{engine: e, documents: discovery.New(o)})
}

// newDoor connects to the other services and builds the handlers.
func (c *config) newDoor(ctx context.Context, n *run.Node, parts *prepared.Parts) (*door, error) {
	headers, err := c.browsers.New()
	if err != nil {
		return nil, err
	}
	headers.Names = c.listener.Names
	pages, err := c.console.New(n.Vocabulary, headers, console.Documented{Types: parts.Engine.Types, Flags: n.Flags, Version: discovery.Version(n.Release).GitVersion})
	if err != nil {
		return nil, err
	}
	b, err := backends.Connect(ctx, n, c.copiedBytes)
	if err != nil {
		return nil, err
	}
	n.Health.Add(run.Check{Name: "storage", Probe: func(ctx context.Context) error {
		_, err := b.Store.Revision(ctx, resource.GroupResource{})
		return err
	}})
	n.Health.Add(backends.StoredObjects(b.Direct))
	d := &door{log: n.Log, vocabulary: n.Vocabulary, release: n.Release, tracer: n.Tracer, store: b.Store, admission: b.Admission,
		requestTimeout: c.requestTimeout, goawayChance: c.goawayChance, browsers: headers, console: pages, gates: n.Gates,
		relearned: make(chan struct{}, 1)}
	d.learn(parts.Engine, 0)
	n.Memory.Add("openapi-documents", d.types.Load().documents.Library())
	codec := wire.New(wire.Config{Vocabulary: n.Vocabulary, Release: n.Release, CBOR: d.gates.On(featuregate.CBOR)})
	d.codec = codec
	n.Memory.Add("encoded-objects", codec)
	d.audit = auditing.Auditor{Text: codec.Text, StatusText: wire.StatusText, StatusOf: statusOf, Recent: &auditing.Recent{}}
	if d.audit.Log, d.audit.Policy, err = c.audit.Open(n); err != nil {
		return nil, err
	}
	d.tokens = legacytokens.New(legacytokens.Config{Authn: b.Authn, Vocabulary: n.Vocabulary, Engine: d.engine, Now: time.Now, Log: n.Log, Metrics: n.Metrics,
		Writes: func() *writes.Handlers { return d.writes }})
	b.Authn = d.tokens
	d.access = c.newAccess(n, b)
	d.pacer = pace.New(pace.Config{Grace: bodyGrace, Rate: bodyRate, Stall: answerStall, Metrics: n.Metrics})
	n.Go("watching over slow clients", d.pacer.Run)
	assigner, err := c.addresses.Open(n, b.Store)
	if err != nil {
		return nil, err
	}
	if d.reads, err = c.newReads(ctx, n, b, codec, d); err != nil {
		return nil, err
	}
	d.writes = &writes.Handlers{Store: b.Store, Reads: d.reads, Admission: b.Admission, Codec: codec, Vocabulary: n.Vocabulary, Log: n.Log,
		Allow: d.access.Allow, Addresses: assigner}
	d.ranges = serviceranges.Keeper{Config: serviceranges.Config{Vocabulary: n.Vocabulary, Store: b.Store, Writes: d.writes, Engine: d.engine, Default: assigner.Networks, Log: n.Log}}
	assigner.Shown = d.ranges
	tokens, err := issuer.New(n)
	if err != nil {
		return nil, err
	}
	d.actions = &subresources.Handlers{Store: b.Store, Writes: d.writes, Admission: b.Admission, Codec: codec, Vocabulary: n.Vocabulary, Tokens: tokens, Now: time.Now}
	if d.connections, err = c.connections.New(n, c.advertise, b.Store, b.Admission); err != nil {
		return nil, err
	}
	d.components = &componentstatus.Handlers{Health: n.Health, Codec: codec}
	d.review = &reviews.Handlers{Authn: b.Authn, Authz: b.Authz, Admission: b.Admission, Codec: codec, Vocabulary: n.Vocabulary}
	d.metrics = requestmetrics.New(n.Metrics, func() float64 { return float64(d.reads.OpenWatches()) + float64(d.connections.Open()) })
	if d.operations, err = operations.New(n, b.Store, d.reads.Watches, discovery.Served(parts.Engine.Types)); err != nil {
		return nil, err
	}
	d.forwarding = forwarding.Start(n, forwarding.Config{Peers: d.operations.Peers, Source: b.Changes, Store: b.Direct, Connections: d.connections, Engine: d.engine,
		Off: n.Gates.Refused(featuregate.Interoperability)})
	d.router = d.routes(n, c.profiling)
	return d, c.prepareObjects(ctx, n, b, d, parts)
}

// prepareObjects creates and follows the objects that the front door needs before it serves.
func (c *config) prepareObjects(ctx context.Context, n *run.Node, b backends.Services, d *door, parts *prepared.Parts) error {
	definitions, err := d.followCustom(ctx, n, b)
	if err != nil {
		return err
	}
	if err := d.migrateCustomTypes(ctx, definitions); err != nil {
		return err
	}
	if err := d.createDefaults(ctx, parts.Defaults); err != nil {
		return fmt.Errorf("creating default objects: %w", err)
	}
	record := emulation.Record{Store: b.Store, Types: parts.Engine.Types, Vocabulary: n.Vocabulary, Log: n.Log}
	if err := d.answered(ctx, func() error { return record.Keep(ctx, n) }); err != nil {
		return err
	}
	if err := c.followExtensions(ctx, n, b, d); err != nil {
		return err
	}
	if err := d.followFairness(ctx, n, b); err != nil {
		return err
	}
	return d.restoreDefaults(n, b)
}

// feedIdle is how long the changes of a type are followed after its last watch.
const feedIdle = 5 * time.Minute

// newReads builds the read handlers with their feeds and token key.
func (c *config) newReads(ctx context.Context, n *run.Node, b backends.Services, codec *wire.Codec, d *door) (*reads.Handlers, error) {
	key, err := d.sealingKey(ctx)
	if err != nil {
		return nil, err
	}
	tokens, err := reads.NewTokens(key)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.Background())
	n.OnStop(func(context.Context) { stop() })
	var draining context.Context
	draining, d.drain = context.WithCancel(context.Background())
	feeds := feed.New(following, feed.Config{Source: b.Changes, Head: b.Store.Revision, Bytes: c.feedBytes, Age: c.watchHistory, Idle: feedIdle})
	n.Memory.Add("feeds", feeds)
	return reads.New(reads.Config{Store: b.Store, Codec: codec, Tokens: tokens, Vocabulary: n.Vocabulary, Feeds: feeds,
		TokenLifetime: c.watchHistory, WatchTimeout: c.watchTimeout, Draining: draining, Costs: d.access.Costs}), nil
}
