package changes

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// askEvery bounds how often messages with unknown keys make a follower ask the
	// hub for keys, after the first few.
	askEvery = time.Second
	askBurst = 5
	// askTimeout bounds the wait for them.
	askTimeout = 2 * time.Second
	// complainEvery bounds how often the log tells of refused messages.
	complainEvery = 10 * time.Second
	// alarmFor is how long a refused message shows in the alarm metric.
	alarmFor = 5 * time.Minute
)

// Why a message is refused, as in the metric.
const (
	reasonMalformed   = "malformed"   // not sealed, or not readable
	reasonUnknownKey  = "unknown_key" // sealed with a key that the hub does not confirm
	reasonForged      = "forged"      // not sealed by the hub for this subject
	reasonUnconfirmed = "unconfirmed" // names a revision that the hub does not confirm
)

// Opener opens the messages on the bus and refuses those that are not the hub's:
// it counts them, logs a line now and then, and asks the hub for keys. It is
// shared by the followers of a process.
type Opener struct {
	hub     services.WatchHub
	log     *slog.Logger
	refused *prometheus.CounterVec

	mu    sync.Mutex
	types map[resource.GroupResource]*typeKeys

	progress memo
	asking   rate.Sometimes // for the log

	complaint struct {
		sync.Mutex
		last  time.Time // of a refusal
		said  time.Time // when the log last told of one
		count int       // since then
	}
}

// typeKeys are the keys of one resource type.
type typeKeys struct {
	mu   sync.Mutex
	keys map[seal.ID]openingKeys
	asks *rate.Limiter
}

type openingKeys struct {
	changes, progress *seal.Key
	until             time.Time // zero: without an end
}

// memo is the report of progress that was opened last: every follower gets the same.
type memo struct {
	sync.Mutex
	id            seal.ID
	sealed, plain []byte
}

// NewOpener returns an Opener that gets its keys from a hub. Metrics may be nil.
func NewOpener(hub services.WatchHub, metrics prometheus.Registerer, log *slog.Logger) *Opener {
	o := &Opener{hub: hub, log: log, types: map[resource.GroupResource]*typeKeys{}, asking: rate.Sometimes{Interval: complainEvery}}
	o.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portico_changes_refused_total", Help: "Messages on the bus that are not the watch hub's, by the reason of their refusal.",
	}, []string{"reason"})
	for _, reason := range []string{reasonMalformed, reasonUnknownKey, reasonForged, reasonUnconfirmed} {
		o.refused.WithLabelValues(reason)
	}
	if metrics != nil {
		metrics.MustRegister(o.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portico_changes_alarm", Help: "1 when messages on the bus have been refused in the last five minutes.",
		}, o.alarm))
	}
	return o
}

func (o *Opener) alarm() float64 {
	o.complaint.Lock()
	defer o.complaint.Unlock()
	if !o.complaint.last.IsZero() && time.Since(o.complaint.last) < alarmFor {
		return 1
	}
	return 0
}

// open replaces the content of a sealed message by what is in it. It reports
// whether the message is the hub's; missed is true when it may be and the hub
// could not be asked.
func (o *Opener) open(ctx context.Context, gr resource.GroupResource, m *nats.Msg) (ok, missed bool) {
	id, err := seal.KeyID(m.Data)
	if err != nil {
		o.refuse(reasonMalformed, m.Subject)
		return false, false
	}
	keys, known, missed := o.keys(ctx, gr, id)
	if !known {
		o.refuse(reasonUnknownKey, m.Subject)
		return false, missed
	}
	var plain []byte
	switch m.Subject {
	case SubjectProgress:
		plain, err = o.progress.open(keys.progress, id, m.Data)
	case Subject(gr):
		plain, err = keys.changes.Open(m.Data)
	default:
		err = seal.ErrForged
	}
	if err != nil {
		o.refuse(reasonForged, m.Subject)
		return false, false
	}
	m.Data = plain
	return true, false
}

func (p *memo) open(key *seal.Key, id seal.ID, message []byte) ([]byte, error) {
	p.Lock()
	defer p.Unlock()
	if p.sealed != nil && p.id == id && bytes.Equal(p.sealed, message) {
		return p.plain, nil
	}
	sealed := bytes.Clone(message)
	plain, err := key.Open(message)
	if err == nil {
		p.id, p.sealed, p.plain = id, sealed, plain
	}
	return plain, err
}

// keys returns the keys of a name, and asks the hub for them when they are not
// known. Missed is true when it could not answer.
func (o *Opener) keys(ctx context.Context, gr resource.GroupResource, id seal.ID) (keys openingKeys, known, missed bool) {
	o.mu.Lock()
	t := o.types[gr]
	if t == nil {
		t = &typeKeys{asks: rate.NewLimiter(rate.Every(askEvery), askBurst)}
		o.types[gr] = t
	}
	o.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys, known = t.keys[id]; known {
		return keys, keys.until.IsZero() || time.Now().Before(keys.until), false
	}
	// A genuine message that falls to this limit is missed by the next report of
	// progress.
	if !t.asks.Allow() {
		return keys, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := o.hub.Keys(ctx, services.KeysRequest{GroupResource: gr, ID: id[:]})
	if err != nil {
		o.asking.Do(func() { o.log.Warn("the keys of the bus cannot be had", "resource", gr.String(), "error", err) })
		return keys, false, true
	}
	t.keys = o.read(gr, answer)
	keys, known = t.keys[id]
	return keys, known, false
}

// read makes the hub's answer the keys that are known.
func (o *Opener) read(gr resource.GroupResource, answer services.Keys) map[seal.ID]openingKeys {
	known := map[seal.ID]openingKeys{}
	for _, k := range answer.Keys {
		changes, err := seal.NewKey(Subject(gr), k.Changes, k.Public)
		if err != nil || len(k.ID) != seal.IDBytes {
			o.log.Warn("a key of the bus is of no use", "resource", gr.String(), "error", err)
			continue
		}
		progress, err := seal.NewKey(SubjectProgress, k.Progress, k.Public)
		if err != nil {
			o.log.Warn("a key of the bus is of no use", "resource", gr.String(), "error", err)
			continue
		}
		keys := openingKeys{changes: changes, progress: progress}
		if k.Lifetime > 0 {
			keys.until = time.Now().Add(k.Lifetime)
		}
		known[seal.ID(k.ID)] = keys
	}
	return known
}

// refuse counts a message that is not the hub's, and says so now and then.
func (o *Opener) refuse(reason, subject string) {
	o.refused.WithLabelValues(reason).Inc()
	o.complaint.Lock()
	defer o.complaint.Unlock()
	now := time.Now()
	o.complaint.last = now
	o.complaint.count++
	if now.Sub(o.complaint.said) < complainEvery {
		return
	}
	o.log.Warn("messages on the bus refused: they are not from the watch hub",
		"reason", reason, "subject", subject, "refused", o.complaint.count)
	o.complaint.said, o.complaint.count = now, 0
}
