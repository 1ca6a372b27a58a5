package authfilters

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	// seatWait is how long a request may wait for a seat of a limiter, and queueShare the part of
	// its timeout that it may wait in a queue of its level: a quarter.
	seatWait   = 30 * time.Second
	queueShare = 4
)

// Limits are the numbers of concurrent requests.
type Limits struct {
	Reads, Writes, Connections int
	// Watches is the number of open watches of one user.
	Watches int
	// Fair divides reads and writes by priority levels.
	Fair    bool
	Timeout time.Duration // of requests
	// Memory counts the bytes that requests hold.
	Memory *ledger.Ledger
}

// Limit sets the limits. With priority levels, the caller must call Run of Shares.
func (c *Control) Limit(l Limits, metrics *prometheus.Registry) {
	c.Connections, c.Memory = inflight.New(l.Connections, seatWait), l.Memory
	kinds := map[string]func() inflight.Counts{"connect": c.Connections.Counts}
	if l.Fair {
		c.Costs = fairness.NewCosts()
		c.Shares = fairness.New(fairness.Config{Seats: l.Reads + l.Writes, Wait: l.Timeout / queueShare})
		metrics.MustRegister(c.Shares)
		kinds["readOnly"] = func() inflight.Counts { return c.Shares.Counts(false) }
		kinds["mutating"] = func() inflight.Counts { return c.Shares.Counts(true) }
	} else {
		c.Reads, c.Writes = inflight.New(l.Reads, seatWait), inflight.New(l.Writes, seatWait)
		kinds["readOnly"], kinds["mutating"] = c.Reads.Counts, c.Writes.Counts
	}
	inflight.Register(metrics, kinds)
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "apiserver_request_bytes_held",
		Help: "Bytes of request bodies, selectors and stalled responses in memory."}, func() float64 {
		held, _ := c.Memory.HeldBy(ledger.User)
		return float64(held)
	}))
	c.Watches = inflight.NewWatches(l.Watches)
	c.Watches.Register(metrics)
}

// Limited makes a request wait for its seats: those of its priority level, or of the limiter of
// connections or of its extension. A watch returns them once its response has started, and then counts
// only among the watches of its user; a stalled response continues without, and a connection keeps them
// until it ends.
func (c *Control) Limited(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Health {
			return next(w, r) // health checks must work under load
		}
		if r.Verb == "watch" && c.Watches != nil {
			who := r.Requester()
			if err := c.Watches.Open(who); err != nil {
				return err
			}
			defer c.Watches.Close(who)
		}
		if seats := c.limiter(r); seats != nil {
			if err := seats.Acquire(r.Context(), r.Requester(), &r.Seat); err != nil {
				return err
			}
			defer r.Seat.Release()
		} else {
			if err := c.share(w, r); err != nil {
				return err
			}
			defer r.Share.Release()
		}
		if r.Exchange != nil {
			r.Exchange.Tell(r)
		}
		return next(w, r)
	}
}

// limiter returns the limiter of a request; nil for one that has seats of its priority level.
func (c *Control) limiter(r *request.Request) *inflight.Limiter {
	switch {
	case r.ExtensionSeats != nil:
		return r.ExtensionSeats
	case r.Connects():
		return c.Connections
	case c.Shares != nil:
		return nil
	case mutates(r.Verb):
		return c.Writes
	}
	return c.Reads
}

func mutates(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Headers of the FlowSchema and the PriorityLevelConfiguration of a request, in canonical form.
const (
	headerFlow  = "X-Kubernetes-Pf-Flowschema-Uid"
	headerLevel = "X-Kubernetes-Pf-Prioritylevel-Uid"
)

// share waits for the seats of the priority level. The response names the level also if it
// is a refusal.
func (c *Control) share(w http.ResponseWriter, r *request.Request) error {
	q := fairness.Request{Attributes: r.Kind(), Mutating: mutates(r.Verb), Bytes: c.cost(r)}
	class := c.Shares.Classify(&q)
	h := w.Header()
	h[headerFlow], h[headerLevel] = class.UIDs()
	return c.Shares.Acquire(r.Context(), class, &q, &r.Share)
}

// cost returns how many bytes of objects a list reads, or a watch before it waits for changes, as far
// as that is known.
func (c *Control) cost(r *request.Request) int64 {
	if r.Type == nil || r.Name != "" || r.Verb != "list" && r.Verb != "watch" && r.Verb != "deletecollection" {
		return 0
	}
	all := c.Costs.Estimate(r.Type.Key, r.Namespace, 0)
	if all <= fairness.BytesPerSeat {
		return all
	}
	o, err := request.ParseReadOptions(r)
	if err != nil || r.Verb == "watch" && !o.Synthetic() {
		return 0 // the handler reports the error
	}
	if _, named := o.Selector.Field("metadata.name"); named {
		return 0
	}
	return c.Costs.Estimate(r.Type.Key, r.Namespace, o.Limit)
}
