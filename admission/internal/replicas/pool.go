// Package replicas asks an admission service: it keeps a connection to each replica, sends
// each request to the replica with the fewest calls, and stops asking replicas that do not
// answer. It supports both protocols and checks responses. What a response or its lack means for
// a request is up to the caller. It serves "Admission plugins" of the specification.
package replicas

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// maxInFlight bounds the calls of one service at a time.
	maxInFlight = 256
	// startFor is how long calls wait for the first connection.
	startFor = 3 * time.Second
	// retireWithin bounds how long calls keep a connection open that is not used for new ones.
	retireWithin = 30 * time.Second
	retireTick   = 50 * time.Millisecond
)

// Config is whom to ask, and as whom.
type Config struct {
	Name     string
	Protocol string
	Endpoint admissionservice.Endpoint
	Trust    admissionservice.Trust
	// Batch are the limits of batches; nil for none. Batched is called with the number of
	// requests of each one.
	Batch   *admissionservice.Batch
	Batched func(requests int)
	// Clients say which addresses may be reached.
	Clients *webhook.Clients
	// Ledger counts the responses of the service; nil counts nothing.
	Ledger *ledger.Ledger
	// Services find the replicas of a Service of the cluster.
	Services locate.Locator
	// Certificate is that of the process; nil if it has none. It is the only credential
	// that a service receives.
	Certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	Vocabulary  vocabulary.Vocabulary
	Log         *slog.Logger
}

// Phase is the operation of a call.
type Phase string

// The phases.
const (
	Mutate   Phase = "mutate"
	Validate Phase = "validate"
)

// Answer is a valid answer.
type Answer struct {
	// Refusal is the denial of the request; nil if the request is allowed.
	Refusal *services.Status
	// Object is the changed object; nil if it is unchanged.
	Object      []byte
	Warnings    []string
	Annotations map[string]string
}

// target is one replica by its protocol. An error that is a *services.Status with code 503
// or 504 is the lack of an answer, any other a wrong answer.
type target interface {
	ask(ctx context.Context, q question) (Answer, error)
	ready() bool
	close()
}

// replica is one address of a service.
type replica struct {
	address string
	target  target
	circuit circuit
	flying  atomic.Int64
	failure atomic.Pointer[string] // of the last call that failed
}

// Pool is the replicas of one service.
type Pool struct {
	config   Config
	opened   time.Time
	cancel   context.CancelFunc
	resolved chan struct{} // closed when the replicas are known
	flying   atomic.Int64
	turns    atomic.Uint64

	mu       sync.RWMutex
	replicas []*replica
	problem  string // why the addresses are not known
}

// NewPool returns the pool of a service and starts to connect. It must be closed.
func NewPool(c Config) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{config: c, opened: time.Now(), cancel: cancel, resolved: make(chan struct{})}
	if c.Protocol == admissionservice.Webhook {
		p.set(map[string]func() (target, error){p.webhookAddress(): func() (target, error) { return newWebhookTarget(c), nil }})
		close(p.resolved)
		return p
	}
	go p.follow(ctx)
	return p
}

// Close closes the connections, after a time in which requests that have begun may still ask.
func (p *Pool) Close() {
	p.cancel()
	time.AfterFunc(retireWithin, func() { p.set(nil) })
}

// set makes the replicas those of the addresses, and keeps the ones that there are.
func (p *Pool) set(addresses map[string]func() (target, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []*replica
	for _, r := range p.replicas {
		if _, ok := addresses[r.address]; ok {
			kept = append(kept, r)
			delete(addresses, r.address)
		} else {
			go r.retire()
		}
	}
	for address, open := range addresses {
		made, err := open()
		if err != nil {
			p.problem = err.Error()
			continue
		}
		kept = append(kept, &replica{address: address, target: made})
	}
	slices.SortFunc(kept, func(a, b *replica) int { return cmp.Compare(a.address, b.address) })
	p.replicas = kept
}

// retire closes the connection of a replica that gets no new calls: it may still be
// answering those in flight.
func (r *replica) retire() {
	late := time.After(retireWithin)
	again := time.NewTicker(retireTick)
	defer again.Stop()
	for r.flying.Load() > 0 {
		select {
		case <-again.C:
			continue
		case <-late:
		}
		break
	}
	r.target.close()
}

// ErrBusy is the error of a call that is not made because too many are under way.
var ErrBusy = errors.New("too many calls of it are under way")

var errNone = services.Unavailable("no replica of it is available")

// Ask asks about a request. The error means that there is no valid answer. A request for
// which a replica is gone is sent to another one, once.
func (p *Pool) Ask(ctx context.Context, phase Phase, r services.AdmissionRequest) (Answer, error) {
	defer p.flying.Add(-1)
	if p.flying.Add(1) > maxInFlight {
		return Answer{}, ErrBusy
	}
	select {
	case <-p.resolved:
	case <-ctx.Done():
		return Answer{}, services.Unavailable("its addresses are not known yet")
	}
	var err error = errNone
	tried := map[*replica]bool{}
	for range 2 {
		next, trial := p.pick(tried, deadline.Full(ctx))
		if next == nil {
			break
		}
		tried[next] = true
		var a Answer
		a, err = next.ask(ctx, question{phase, r, trial})
		if err == nil || ctx.Err() != nil || services.AsStatus(err).Code != http.StatusServiceUnavailable {
			return a, err
		}
	}
	return Answer{}, err
}

// pick returns the available replica with the fewest calls, a connected one if
// there is any; nil if there is none. trial is that of its circuit.
func (p *Pool) pick(tried map[*replica]bool, full bool) (next *replica, trial bool) {
	p.mu.RLock()
	all := slices.Clone(p.replicas)
	p.mu.RUnlock()
	if len(all) > 1 { // those with as many calls take turns
		turn := int(p.turns.Add(1) % uint64(len(all)))
		all = slices.Concat(all[turn:], all[:turn])
	}
	slices.SortStableFunc(all, func(a, b *replica) int {
		if x, y := a.target.ready(), b.target.ready(); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.flying.Load(), b.flying.Load())
	})
	for _, r := range all {
		if tried[r] {
			continue
		}
		if trial, ok := r.circuit.enter(time.Now(), full); ok {
			return r, trial
		}
	}
	return nil, false
}

// question is a call of a replica, and whether it is a trial.
type question struct {
	phase   Phase
	request services.AdmissionRequest
	trial   bool
}

// ask asks a replica whose circuit was entered.
func (r *replica) ask(ctx context.Context, q question) (Answer, error) {
	r.flying.Add(1)
	defer r.flying.Add(-1)
	a, err := r.target.ask(ctx, q)
	how := answered
	if err != nil {
		text := err.Error()
		r.failure.Store(&text)
		how = outcomeOf(ctx, err)
	}
	r.circuit.leave(how, q.trial, time.Now())
	return a, err
}

// outcomeOf returns what an error says about a replica.
func outcomeOf(ctx context.Context, err error) outcome {
	status := services.AsStatus(err)
	switch {
	case deadline.Cut(ctx, err) != nil, again(err):
		return abandoned
	case ctx.Err() != nil, status.Code == http.StatusGatewayTimeout, status.Code == http.StatusServiceUnavailable:
		return unanswered
	}
	return answered
}

// State is the state of a service as this process sees it.
type State struct {
	Breaker  Breaker
	Ready    bool // a replica may be asked
	Problem  string
	Replicas []admissionservice.Replica
}

// State returns the current state.
func (p *Pool) State() State {
	p.mu.RLock()
	defer p.mu.RUnlock()
	s := State{Breaker: Open, Problem: p.problem}
	if len(p.replicas) == 0 {
		s.Breaker = Closed
	}
	now := time.Now()
	rank := map[Breaker]int{Closed: 0, HalfOpen: 1, Open: 2}
	for _, r := range p.replicas {
		state, ready, failure := r.circuit.now(now), r.target.ready(), ""
		if text := r.failure.Load(); text != nil {
			failure = *text
		}
		if rank[state] < rank[s.Breaker] {
			s.Breaker = state
		}
		s.Ready = s.Ready || ready && state != Open
		s.Replicas = append(s.Replicas, admissionservice.Replica{Address: r.address, Ready: ready, Breaker: string(state), LastError: failure})
	}
	return s
}
