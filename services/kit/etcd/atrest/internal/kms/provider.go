// Package kms encrypts values with the help of a KMS plugin, by version 2 of the
// Kubernetes KMS API. The plugin encrypts and decrypts seeds only; values are encrypted here,
// with keys that are derived from a seed.
package kms

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

const (
	// coast is how long a seed encrypts after the last success of Status.
	coast = 3 * time.Minute
	// pollHealthy and pollFailed are the intervals between calls of Status.
	pollHealthy = time.Minute
	pollFailed  = 10 * time.Second
	// freshHealthy and freshFailed are how long a result of Status is an answer to others
	// who ask; freshFailed also is how long a failed Decrypt is not repeated, and neither is one whose
	// answer opens no value.
	freshHealthy = 20 * time.Second
	freshFailed  = 3 * time.Second
	// maxSeeds bounds the decrypted seeds in memory. There is one for each key of the
	// plugin and start of a process whose values are still stored.
	maxSeeds = 4096
	// maxFailures bounds the seeds that are known not to be decrypted.
	maxFailures = 256
)

// Spec configures a provider.
type Spec struct {
	Name     string
	Endpoint string // unix:///...
	Timeout  time.Duration
}

// Provider encrypts and decrypts with one plugin. It is safe for concurrent use.
type Provider struct {
	spec    Spec
	plugin  *plugin
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time

	writes atomic.Pointer[writing]
	seeds  *lru.Cache[digest, []byte]
	// candidates are answers of Decrypt with which no value has been opened yet: they may be wrong.
	candidates *lru.Cache[digest, candidate]
	failed     *lru.Cache[digest, failure]
	away       atomic.Pointer[failure]
	flights    singleflight.Group

	mu      sync.Mutex // held while Status is called
	checked atomic.Pointer[failure]
}

// digest identifies a header.
type digest [sha256.Size]byte

// writing is the seed that encrypts.
type writing struct {
	keyID  string
	header []byte
	seed   []byte
	until  time.Time
}

// candidate is an answer of Decrypt, and when it was received.
type candidate struct {
	seed []byte
	at   time.Time
}

// failure is the result of a call; err is nil for a success.
type failure struct {
	at  time.Time
	err error
}

func newProvider(s Spec, m *metrics, log *slog.Logger) (*Provider, error) {
	p := &Provider{spec: s, metrics: m, log: log, now: time.Now}
	var err error
	if p.plugin, err = dial(s, m.took); err != nil {
		return nil, err
	}
	if p.seeds, err = lru.New[digest, []byte](maxSeeds); err != nil {
		return nil, err
	}
	if p.candidates, err = lru.New[digest, candidate](maxFailures); err != nil {
		return nil, err
	}
	p.failed, err = lru.New[digest, failure](maxFailures)
	return p, err
}

// Seal encrypts a value. about is authenticated, and not part of the result. It calls the
// plugin only if there is no seed that may still be used.
func (p *Provider) Seal(plain, about []byte) ([]byte, error) {
	w := p.writes.Load()
	if w == nil || p.now().After(w.until) {
		if err := p.Check(context.Background()); err != nil {
			return nil, err
		}
		if w = p.writes.Load(); w == nil || p.now().After(w.until) {
			return nil, p.named(errors.New("its last seed has expired"))
		}
	}
	return seal(w.seed, w.header, plain, about)
}

// Open is the reverse of Seal. It calls the plugin only for a seed that is not in memory.
func (p *Provider) Open(sealed, about []byte) ([]byte, error) {
	header, rest, err := split(sealed)
	if err != nil {
		return nil, err
	}
	id := digest(sha256.Sum256(header))
	if seed := p.proven(id, header); seed != nil {
		return unseal(seed, header, rest, about)
	}
	seed, err := p.seedOf(id, header)
	if err != nil {
		return nil, err
	}
	plain, err := unseal(seed, header, rest, about)
	if err == nil { // the value is authenticated, so that the plugin has answered rightly
		p.seeds.Add(id, seed)
		p.candidates.Remove(id)
	}
	return plain, err
}

// Stale reports whether Seal uses another key of the plugin than the one of a value.
func (p *Provider) Stale(sealed []byte) bool {
	w := p.writes.Load()
	if w == nil {
		return false
	}
	header, _, err := split(sealed)
	if err != nil || bytes.Equal(header, w.header) {
		return err != nil
	}
	id, _, ok := cut(header)
	return !ok || string(id) != w.keyID
}

// proven returns the seed of a header if it is known to be the right one, else nil.
func (p *Provider) proven(id digest, header []byte) []byte {
	if w := p.writes.Load(); w != nil && bytes.Equal(w.header, header) {
		return w.seed
	}
	seed, _ := p.seeds.Get(id)
	return seed
}

// seedOf returns what the plugin says is the seed of a header.
func (p *Provider) seedOf(id digest, header []byte) ([]byte, error) {
	if c, ok := p.candidates.Get(id); ok && p.now().Sub(c.at) < freshFailed {
		return c.seed, nil
	}
	if f, ok := p.failed.Get(id); ok && p.now().Sub(f.at) < freshFailed {
		return nil, f.err
	}
	if f := p.away.Load(); f != nil && p.now().Sub(f.at) < freshFailed {
		return nil, f.err
	}
	seed, err, _ := p.flights.Do(string(id[:]), func() (any, error) { return p.decrypt(id, header) })
	if err != nil {
		return nil, err
	}
	return seed.([]byte), nil
}

// decrypt asks the plugin for a seed.
func (p *Provider) decrypt(id digest, header []byte) ([]byte, error) {
	e, err := decodeHeader(header)
	if err != nil {
		return nil, err
	}
	seed, err := p.plugin.decrypt(e)
	if err != nil {
		f := failure{p.now(), p.named(err)}
		if p.failed.Add(id, f); Away(err) {
			p.away.Store(&f)
		}
		return nil, f.err
	}
	p.away.Store(nil)
	p.failed.Remove(id)
	p.candidates.Add(id, candidate{seed, p.now()})
	return seed, nil
}

// Check returns nil if the plugin is healthy and encrypts. The result may be some seconds
// old.
func (p *Provider) Check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.checked.Load(); c != nil && p.now().Sub(c.at) < c.either(freshHealthy, freshFailed) {
		return c.err
	}
	return p.check(ctx)
}

// either returns a duration for a success or a failure.
func (f *failure) either(success, failed time.Duration) time.Duration {
	if f.err == nil {
		return success
	}
	return failed
}

// due reports whether the plugin should be polled.
func (p *Provider) due() bool {
	c := p.checked.Load()
	return c == nil || p.now().Sub(c.at) >= c.either(pollHealthy, pollFailed)
}

// check calls Status, and replaces the seed if the key has changed. The caller holds mu.
func (p *Provider) check(ctx context.Context) error {
	until := p.now().Add(coast)
	keyID, err := p.plugin.status(ctx)
	if err == nil {
		err = p.use(ctx, keyID, until)
	}
	err = p.named(err)
	if err != nil && ctx.Err() != nil { // the plugin is not to blame
		return err
	}
	if before := p.checked.Swap(&failure{p.now(), err}); err != nil && (before == nil || before.err == nil) {
		p.log.Warn("a KMS plugin has failed", "provider", p.spec.Name, "error", err)
	} else if err == nil && before != nil && before.err != nil {
		p.log.Info("a KMS plugin is healthy again", "provider", p.spec.Name)
	}
	p.metrics.record(p, err)
	return err
}

// use makes Seal use the key of the plugin, until a time. A failure leaves what it uses.
func (p *Provider) use(ctx context.Context, keyID string, until time.Time) error {
	if w := p.writes.Load(); w != nil && w.keyID == keyID {
		next := *w
		next.until = until
		p.writes.Store(&next)
		return nil
	}
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // it never fails
	e, err := p.plugin.encrypt(ctx, seed)
	if err != nil {
		return err
	}
	if e.keyID != keyID {
		return errors.New("the plugin encrypts with another key_id than Status returned")
	}
	// What it encrypts must be decrypted again, or all values with this seed are lost at the next start.
	if again, err := p.plugin.decrypt(e); err != nil || !bytes.Equal(again, seed) {
		return cmp.Or(err, errors.New("the plugin does not decrypt what it has encrypted"))
	}
	header := e.encode()
	// The seed stays readable when it is replaced.
	p.seeds.Add(digest(sha256.Sum256(header)), seed)
	p.writes.Store(&writing{keyID: keyID, header: header, seed: seed, until: until})
	p.metrics.rotations.WithLabelValues(p.spec.Name).Inc()
	p.log.Info("using a new seed", "provider", p.spec.Name, "keyIDHash", fmt.Sprintf("%.8x", sha256.Sum256([]byte(keyID))))
	return nil
}

// named adds the name of the provider to an error.
func (p *Provider) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("KMS provider %q: %w", p.spec.Name, err)
}
