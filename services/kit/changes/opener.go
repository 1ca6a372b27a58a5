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
	// keyRequestInterval and keyRequestBurst limit the rate at which messages with unknown
	// keys cause requests for keys, per resource type.
	keyRequestInterval = time.Second
	keyRequestBurst    = 5
	// keyRequestTimeout bounds one request for keys.
	keyRequestTimeout = 2 * time.Second
	// logInterval bounds how often refused messages are logged.
	logInterval = 10 * time.Second
	// alarmDuration is how long a refused message sets the alarm metric.
	alarmDuration = 5 * time.Minute
)

// Reasons for refusing a message: the values of the metric's label.
const (
	reasonMalformed   = "malformed"   // not sealed, or cannot be decoded
	reasonUnknownKey  = "unknown_key" // sealed with a key that the hub does not confirm
	reasonForged      = "forged"      // not sealed by the hub for this subject
	reasonUnconfirmed = "unconfirmed" // names a revision that the hub does not confirm
)

// Opener opens the sealed messages on the bus and refuses those that the hub has not
// sealed: it counts them and logs at most every logInterval. It requests keys from the hub.
// It is shared by the followers of a process.
type Opener struct {
	hub     services.WatchHub
	log     *slog.Logger
	refused *prometheus.CounterVec

	mu    sync.Mutex
	types map[resource.GroupResource]*typeKeys

	progress   progressCache
	failureLog rate.Sometimes // for the log

	refusals struct {
		sync.Mutex
		last   time.Time // of the last refusal
		logged time.Time // when one was logged last
		count  int       // since then
	}
}

// typeKeys are the keys of one resource type.
type typeKeys struct {
	mu      sync.Mutex
	keys    map[seal.ID]openingKeys
	limiter *rate.Limiter
}

type openingKeys struct {
	changes, progress *seal.Key
	until             time.Time // zero: does not expire
}

// progressCache is the last opened progress report, which every follower receives.
type progressCache struct {
	sync.Mutex
	id            seal.ID
	sealed, plain []byte
}

// NewOpener returns an Opener that gets its keys from a hub. Metrics may be nil.
func NewOpener(hub services.WatchHub, metrics prometheus.Registerer, log *slog.Logger) *Opener {
	o := &Opener{hub: hub, log: log, types: map[resource.GroupResource]*typeKeys{}, failureLog: rate.Sometimes{Interval: logInterval}}
	o.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portico_changes_refused_total", Help: "Messages on the bus that were rejected because they are not from the watch hub, by reason.",
	}, []string{"reason"})
	for _, reason := range []string{reasonMalformed, reasonUnknownKey, reasonForged, reasonUnconfirmed} {
		o.refused.WithLabelValues(reason)
	}
	if metrics != nil {
		metrics.MustRegister(o.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portico_changes_alarm", Help: "1 if messages on the bus were rejected in the last five minutes.",
		}, o.alarm))
	}
	return o
}

func (o *Opener) alarm() float64 {
	o.refusals.Lock()
	defer o.refusals.Unlock()
	if !o.refusals.last.IsZero() && time.Since(o.refusals.last) < alarmDuration {
		return 1
	}
	return 0
}

// open decrypts a sealed message in place and reports whether the hub has sealed it.
// missed is true if that is unknown because the hub did not return its keys.
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

func (p *progressCache) open(key *seal.Key, id seal.ID, message []byte) ([]byte, error) {
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

// keys returns the keys with an ID, and requests them from the hub if they are unknown.
// missed is true if the request failed.
func (o *Opener) keys(ctx context.Context, gr resource.GroupResource, id seal.ID) (keys openingKeys, known, missed bool) {
	o.mu.Lock()
	t := o.types[gr]
	if t == nil {
		t = &typeKeys{limiter: rate.NewLimiter(rate.Every(keyRequestInterval), keyRequestBurst)}
		o.types[gr] = t
	}
	o.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys, known = t.keys[id]; known {
		return keys, keys.until.IsZero() || time.Now().Before(keys.until), false
	}
	// If the limit drops a genuine message, the next progress report reveals the gap.
	if !t.limiter.Allow() {
		return keys, false, false
	}
	ctx, cancel := context.WithTimeout(ctx, keyRequestTimeout)
	defer cancel()
	answer, err := o.hub.Keys(ctx, services.KeysRequest{GroupResource: gr, ID: id[:]})
	if err != nil {
		o.failureLog.Do(func() { o.log.Warn("requesting the keys of the bus failed", "resource", gr.String(), "error", err) })
		return keys, false, true
	}
	t.keys = o.read(gr, answer)
	keys, known = t.keys[id]
	return keys, known, false
}

// read parses the keys in a response of the hub. Invalid ones are skipped.
func (o *Opener) read(gr resource.GroupResource, answer services.Keys) map[seal.ID]openingKeys {
	known := map[seal.ID]openingKeys{}
	for _, k := range answer.Keys {
		changes, err := seal.NewKey(Subject(gr), k.Changes, k.Public)
		if err != nil || len(k.ID) != seal.IDBytes {
			o.log.Warn("a key of the bus is invalid", "resource", gr.String(), "error", err)
			continue
		}
		progress, err := seal.NewKey(SubjectProgress, k.Progress, k.Public)
		if err != nil {
			o.log.Warn("a key of the bus is invalid", "resource", gr.String(), "error", err)
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

// refuse counts a refused message, and logs at most every logInterval.
func (o *Opener) refuse(reason, subject string) {
	o.refused.WithLabelValues(reason).Inc()
	o.refusals.Lock()
	defer o.refusals.Unlock()
	now := time.Now()
	o.refusals.last = now
	o.refusals.count++
	if now.Sub(o.refusals.logged) < logInterval {
		return
	}
	o.log.Warn("messages on the bus rejected: they are not from the watch hub",
		"reason", reason, "subject", subject, "refused", o.refusals.count)
	o.refusals.logged, o.refusals.count = now, 0
}
