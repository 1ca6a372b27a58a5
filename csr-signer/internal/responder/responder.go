// Package responder answers who asks whether a certificate was revoked: it serves the
// authority's certificate revocation list (RFC 5280) and OCSP responses (RFC 6960) to clients
// without credentials. What it serves is signed, so it needs no TLS. It signs a new list when
// Revocations change or the list gets old, and one response per certificate and list, never one
// per request.
package responder

import (
	"context"
	"crypto/x509"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ocsp"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/services/revocation"
)

// Authority signs. Its key does not leave it.
type Authority interface {
	Certificate() *x509.Certificate
	// SignList returns the DER of a revocation list; an error if the certificate of the
	// authority does not allow lists.
	SignList(list *x509.RevocationList) ([]byte, error)
	// SignStatus returns the DER of an OCSP response.
	SignStatus(status ocsp.Response) ([]byte, error)
}

// Source is what is known of certificates.
type Source interface {
	// Certificate returns the certificate with a serial number in lower-case hexadecimal.
	Certificate(serial string) (revocation.Certificate, bool)
	// Named returns the certificates that Revocations of a subject may revoke.
	Named(subject string) []revocation.Certificate
	// Revocations returns all of them, and the time of which they are the state; the zero time
	// if they are not known yet.
	Revocations() ([]revocation.Spec, time.Time)
	// Changed gets a value after each change of Revocations.
	Changed() <-chan struct{}
}

const (
	// pause is the least time between two lists.
	pause = 500 * time.Millisecond
	// statusesPerSecond bounds the responses that are signed, with twice that at once.
	statusesPerSecond = 100
)

// Responder is an http.Handler. The fields that are exported are required.
type Responder struct {
	Authority Authority
	Source    Source
	// Validity is how long lists and responses are valid after the state that they are about.
	Validity time.Duration
	Clock    clock.WithTicker
	Log      *slog.Logger

	signing  *rate.Limiter
	requests *prometheus.CounterVec
	current  atomic.Pointer[edition] // nil before the first
	renewing sync.Mutex
	expired  rate.Sometimes // for renewals because the current edition has expired
}

// Init registers the metrics of the responder. It is called first.
func (r *Responder) Init(metrics prometheus.Registerer) error {
	r.signing = rate.NewLimiter(statusesPerSecond, 2*statusesPerSecond)
	r.expired = rate.Sometimes{Interval: pause}
	r.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_revocation_status_requests_total",
		Help: "Requests for the certificate revocation list and for OCSP responses, by their result."}, []string{"document", "result"})
	return metrics.Register(r.requests)
}

// Run signs lists until ctx ends, and then returns nil.
func (r *Responder) Run(ctx context.Context) error {
	for {
		r.renew()
		wait := r.Validity / 4
		if r.current.Load() == nil {
			wait = pause
		}
		select {
		case <-r.Clock.After(wait):
			continue
		case <-ctx.Done():
			return nil
		case <-r.Source.Changed():
		}
		select { // changes come together
		case <-r.Clock.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// valid returns the edition that is served at a time, nil if there is none that is valid. The clock
// of this machine may have been set forward since the current one was signed: then it is renewed.
func (r *Responder) valid(now time.Time) *edition {
	e := r.current.Load()
	if e == nil || now.Before(e.until) {
		return e
	}
	r.expired.Do(r.renew)
	if e = r.current.Load(); now.Before(e.until) {
		return e
	}
	return nil
}

// renew makes a new edition, unless it would have expired already.
func (r *Responder) renew() {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	specs, asOf := r.Source.Revocations()
	now := r.Clock.Now()
	if asOf.IsZero() || !now.Before(asOf.UTC().Truncate(time.Second).Add(r.Validity)) {
		return
	}
	e := &edition{asOf: asOf.UTC().Truncate(time.Second), set: revocation.NewSet(specs), statuses: map[statusKey][]byte{}}
	e.until, e.number = e.asOf.Add(r.Validity), asOf.UnixMilli()
	if before := r.current.Load(); before != nil {
		e.number = max(e.number, before.number+1) // also after the clock was set back, unless this process begins after that
	}
	e.revoked = r.revoked(specs, now)
	list := &x509.RevocationList{Number: big.NewInt(e.number), ThisUpdate: e.asOf, NextUpdate: e.until, RevokedCertificateEntries: e.entries()}
	var err error
	if e.list, err = r.Authority.SignList(list); err != nil && r.current.Load() == nil {
		r.Log.Warn("no certificate revocation list is served, only OCSP", "error", err)
	}
	e.tag = tagOf(e.list)
	r.current.Store(e)
}

// entry is a certificate that is revoked.
type entry struct {
	number *big.Int
	since  time.Time
	reason int
}

// newEntry returns the entry of a certificate that a Revocation revokes. The time of its expiry is
// zero if there is no record of it.
func newEntry(spec *revocation.Spec, number *big.Int, expires, now time.Time) entry {
	e := entry{number, spec.Created, ocsp.Unspecified}
	if e.since.IsZero() {
		e.since = now
	}
	if spec.Until != nil && (expires.IsZero() || spec.Until.Before(expires)) {
		e.reason = ocsp.CertificateHold // it will be valid again
	}
	return e
}

// revoked returns the revoked certificates by serial number. A serial number that a Revocation
// names counts, even if there is no record of its certificate.
func (r *Responder) revoked(specs []revocation.Spec, now time.Time) map[string]entry {
	found := map[string]entry{}
	add := func(spec *revocation.Spec, serial string, expires time.Time) {
		number, ok := new(big.Int).SetString(serial, 16)
		if !ok {
			return
		}
		e := newEntry(spec, number, expires, now)
		if before, ok := found[serial]; !ok || before.reason > e.reason || before.reason == e.reason && e.since.Before(before.since) {
			found[serial] = e
		}
	}
	for i := range specs {
		spec := &specs[i]
		if spec.Ended(now) {
			continue
		}
		if spec.Serial != "" {
			serial := revocation.Canonical(spec.Serial)
			certificate, _ := r.Source.Certificate(serial)
			add(spec, serial, certificate.NotAfter)
			continue
		}
		for _, certificate := range r.Source.Named(spec.Subject()) {
			if spec.Revokes(certificate.Authentication(), now) {
				add(spec, certificate.Serial, certificate.NotAfter)
			}
		}
	}
	return found
}

// entries returns the entries of the list, in the order of their numbers.
func (e *edition) entries() (entries []x509.RevocationListEntry) {
	for _, revoked := range e.revoked {
		entries = append(entries, x509.RevocationListEntry{SerialNumber: revoked.number, RevocationTime: revoked.since.UTC(), ReasonCode: revoked.reason})
	}
	slices.SortFunc(entries, func(a, b x509.RevocationListEntry) int { return a.SerialNumber.Cmp(b.SerialNumber) })
	return entries
}

// of returns whether the certificate of a number is revoked, and false if nothing is known of
// it.
func (e *edition) of(source Source, number *big.Int, now time.Time) (entry, bool) {
	serial := number.Text(16)
	if revoked, ok := e.revoked[serial]; ok {
		return revoked, true
	}
	certificate, ok := source.Certificate(serial)
	if !ok {
		return entry{}, false
	}
	spec := e.set.Revokes(certificate.Authentication(), now) // it may be newer than the edition
	if spec == nil {
		return entry{}, true
	}
	return newEntry(spec, number, certificate.NotAfter, now), true
}
