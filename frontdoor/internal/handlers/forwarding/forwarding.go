// Package forwarding lets front doors that serve different types, while a suite is rolled to another emulated
// version, serve for each other: it adds the types of the others to the aggregated discovery documents, and
// hands requests for types that this front door does not serve on to one that does. A request is forwarded
// once. Only built-in types are exchanged: every front door follows the custom ones and the extensions itself.
//
// The front door of the client authenticates and authorizes the request, and ends it
// when that no longer holds; the other one authorizes and admits it again.
// docs/decisions/0063 has the reasons.
package forwarding

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// askAgain is the pause before a front door that did not respond is called again.
	askAgain = 2 * time.Second
	// avoided is how long a front door is tried last after it could not be reached.
	avoided = 5 * time.Second
	// maxOthers bounds the front doors that are considered.
	maxOthers = 32
	// seats is the number of requests in progress at other front doors, and seatWait how long a
	// further one waits. A watch returns its seat when its response begins.
	seats, seatWait = 200, 10 * time.Second
)

// Config configures Handlers.
type Config struct {
	// Peers are the front doors. Its Served identifies Served.
	Peers  *peers.Peers
	Source changes.Source
	Store  services.Reader
	// Connections proxy requests.
	Connections *connect.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Off is true for a front door that forwards no requests.
	Off bool
	// Header is the name of the header of a forwarded request.
	Header  string
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Handlers forward requests.
type Handlers struct {
	Config
	mirror  *changes.Mirror[records.Announced]
	others  atomic.Pointer[[]*other]
	changed chan struct{}
	wake    chan struct{}
	seats   *inflight.Limiter
	over    func(*other) connect.Extension
	metrics *metrics
}

// Start returns handlers that follow the other front doors, unless they are off or the process has
// no certificate of the suite.
func Start(n *run.Node, c Config) *Handlers {
	c.Header, c.Log, c.Metrics = n.Vocabulary.Extension+"peer-proxied", n.Log, n.Metrics
	h := New(c)
	if n.Identity() != nil && !c.Off {
		n.Go("following other front doors", h.Follow)
		n.Go("asking other front doors what they serve", h.Ask)
	}
	return h
}

// New returns handlers that know no other front door until they run.
func New(c Config) *Handlers {
	h := &Handlers{Config: c, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), seats: inflight.New(seats, seatWait), metrics: newMetrics(c.Metrics)}
	h.others.Store(&[]*other{})
	transport := c.Peers.Transport()
	h.over = func(o *other) connect.Extension {
		return connect.Extension{Host: o.At, Transport: transport, Plain: true}
	}
	h.mirror = changes.NewMirror(changes.MirrorConfig[records.Announced]{Source: c.Source, Store: c.Store, Log: c.Log,
		GroupResource: records.Resource(), Decode: records.Decode, Changed: func() { h.learn(h.mirror.List("")) }})
	return h
}

// other is another front door that serves other types than this one.
type other struct {
	records.Announced
	*answered
}

// answered is what is known of a front door while it runs.
type answered struct {
	mu      sync.Mutex
	groups  []apidiscovery.APIGroupDiscovery // nil until it has answered
	targets map[request.Target]bool
	// avoid is when it may be tried before others again.
	avoid time.Time
}

// Follow follows the records of front doors until ctx ends, and then returns nil.
func (h *Handlers) Follow(ctx context.Context) error { return h.mirror.Run(ctx) }

// Changed receives a value after what Union adds has changed.
func (h *Handlers) Changed() <-chan struct{} { return h.changed }

// learn takes the announced front doors. Those that serve the same as this one are left out.
func (h *Handlers) learn(announced []records.Announced) {
	before, after := *h.others.Load(), []*other{}
	for _, a := range announced {
		if a.Instance == "" || a.Instance == h.Peers.Instance || a.Served == "" || a.Served == h.Peers.Served || len(after) == maxOthers {
			continue
		}
		o := &other{a, &answered{}}
		if i := slices.IndexFunc(before, func(b *other) bool { return b.Instance == a.Instance && b.Served == a.Served }); i >= 0 {
			o.answered = before[i].answered
		}
		after = append(after, o)
	}
	h.others.Store(&after)
	if len(before) == 0 && len(after) == 0 {
		return
	}
	signal(h.wake)
	if !slices.EqualFunc(before, after, func(a, b *other) bool { return a.answered == b.answered }) {
		signal(h.changed)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ask asks other front doors what they serve, each once, until ctx ends, and then returns nil.
func (h *Handlers) Ask(ctx context.Context) error {
	var again <-chan time.Time
	for {
		select {
		case <-h.wake:
		case <-again:
		case <-ctx.Done():
			return nil
		}
		if again = nil; !h.askAll(ctx) {
			again = time.After(askAgain)
		}
	}
}

// askAll asks those that have not answered, and returns false if one still has not.
func (h *Handlers) askAll(ctx context.Context) bool {
	var group sync.WaitGroup
	var failed atomic.Bool
	for _, o := range *h.others.Load() {
		if o.described() != nil {
			continue
		}
		group.Go(func() {
			answer, err := h.Peers.Ask(ctx, o.Announced, peers.Question{Served: true})
			if err != nil || len(answer.Served) == 0 {
				failed.Store(true)
				h.metrics.unread.WithLabelValues("fetch_discovery").Inc()
				h.Log.Debug("requesting the types of another front door failed, retrying", "host", o.Host, "at", o.At, "error", err)
				return
			}
			o.learn(answer.Served)
			h.Log.Info("another front door serves other types: requests for them are forwarded", "host", o.Host, "at", o.At, "emulated", o.Release)
			signal(h.changed)
		})
	}
	group.Wait()
	return !failed.Load()
}

func (a *answered) learn(groups []apidiscovery.APIGroupDiscovery) {
	targets := map[request.Target]bool{}
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				t := request.Target{Group: g.Name, Version: v.Version, Resource: r.Resource}
				targets[t] = true
				for _, s := range r.Subresources {
					t.Subresource = s.Subresource
					targets[t] = true
				}
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.groups, a.targets = groups, targets
}

// described returns what the front door serves; nil if that is not known.
func (a *answered) described() []apidiscovery.APIGroupDiscovery {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.groups
}

// Union returns a function that adds what other front doors serve now to what this one serves; nil if
// they serve nothing else.
func (h *Handlers) Union() func([]apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
	var doors []described
	for _, o := range *h.others.Load() {
		if groups := o.described(); groups != nil {
			doors = append(doors, described{o.Release, o.Served, groups})
		}
	}
	if len(doors) == 0 {
		return nil
	}
	return func(own []apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
		return union(ordered(slices.Concat(doors, []described{{h.Peers.Release, h.Peers.Served, own}})))
	}
}

// Serves reports whether another front door serves a group version.
func (h *Handlers) Serves(group, version string) bool {
	for _, o := range *h.others.Load() {
		for _, g := range o.described() {
			if g.Name == group && slices.ContainsFunc(g.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == version }) {
				return true
			}
		}
	}
	return false
}
