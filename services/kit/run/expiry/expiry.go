// Package expiry watches the certificates that a process has in files, and says in time that
// one of them ends: as a metric, in the log, and in the process's readiness. The files are
// read again and again, so that renewed certificates count at once.
//
// It decides when to warn. Whether a certificate is valid is decided by those who check it.
// It serves "Health endpoints" of the specification.
package expiry

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// warnWithin and warnShare are when to warn: so long before the end, or when that
	// share of its life is left, for certificates that live shortly.
	warnWithin, warnShare = 14 * 24 * time.Hour, 5
	// checkEvery is the interval of checks of the files, and readEvery how old an
	// answer may be that a metric or a health check gets.
	checkEvery, readEvery = time.Minute, 5 * time.Second
	// repeatEvery is the time between two warnings about the same certificate.
	repeatEvery = 24 * time.Hour
)

// Kind is what a file is for.
type Kind string

const (
	// Own is a certificate that the process shows, with intermediates after it. The first
	// that expires ends its use, and the process is not ready then.
	Own Kind = "certificate"
	// Authorities are certificates by which the process knows others. The last that
	// expires ends their use.
	Authorities Kind = "authorities"
)

// Source is where certificates are read.
type Source struct {
	Kind Kind
	// Name is that of the file, for people.
	Name string
	// Read returns PEM blocks, of which certificates count; the content of the file Name
	// when it is nil.
	Read func() ([]byte, error)
}

// Watch watches the certificates of one process. Any goroutine may use it.
type Watch struct {
	log  *slog.Logger
	now  func() time.Time
	desc *prometheus.Desc

	mu      sync.Mutex
	sources []Source
	read    time.Time
	found   []certificate
	said    map[string]remark // by name
}

// certificate is the one of a file that counts.
type certificate struct {
	source Source
	err    error
	end    time.Time
	life   time.Duration
}

// remark is what was last said about a file.
type remark struct {
	what string
	at   time.Time
}

// New returns a Watch of no files. A nil now is the system's clock.
func New(log *slog.Logger, now func() time.Time) *Watch {
	if now == nil {
		now = time.Now
	}
	return &Watch{log: log, now: now, said: map[string]remark{}, desc: prometheus.NewDesc("portico_certificate_expiration_timestamp_seconds",
		"When the certificate in a file expires, in seconds since 1970: the first one of a chain, the last one of authorities.", []string{"file", "kind"}, nil)}
}

// Add adds a file to those that are watched, once.
func (w *Watch) Add(s Source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.sources {
		if known.Name == s.Name && known.Kind == s.Kind {
			return
		}
	}
	w.sources, w.read = append(w.sources, s), time.Time{}
}

// Run warns in the log until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	ticks := time.NewTicker(checkEvery)
	defer ticks.Stop()
	for {
		w.Warn()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// Expired returns which of the process's own certificates have expired; nil when none has.
func (w *Watch) Expired() error {
	var all []error
	for _, c := range w.certificates() {
		if left := c.end.Sub(w.now()); c.err == nil && c.source.Kind == Own && left <= 0 {
			all = append(all, fmt.Errorf("%s expired at %s", c.source.Name, c.end.UTC().Format(time.RFC3339)))
		}
	}
	return errors.Join(all...)
}

// Summary returns for people when the first of all certificates expires; empty when there
// are none.
func (w *Watch) Summary() string {
	var first *certificate
	found := w.certificates()
	for i, c := range found {
		if c.err == nil && (first == nil || c.end.Before(first.end)) {
			first = &found[i]
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%d days until the first expires", int(first.end.Sub(w.now()).Hours()/24))
}

// Warn logs what is about to expire, has expired, or cannot be read.
func (w *Watch) Warn() {
	for _, c := range w.certificates() {
		left := c.end.Sub(w.now())
		switch {
		case c.err != nil:
			w.say(c, "unreadable", func() { w.log.Warn("a certificate cannot be read", "file", c.source.Name, "error", c.err) })
		case left <= 0:
			w.sayExpired(c)
		case left < min(warnWithin, c.life/warnShare):
			w.say(c, "ending", func() {
				w.log.Warn("a certificate expires soon: renew it", "file", c.source.Name, "kind", c.source.Kind, "at", c.end.UTC(), "left", left.Round(time.Minute).String())
			})
		default:
			w.say(c, "", func() {})
		}
	}
}

// WarnOfExpired logs what has expired. Files that cannot be read are those that a start creates, or fails without.
func (w *Watch) WarnOfExpired() {
	for _, c := range w.certificates() {
		if c.err == nil && !c.end.After(w.now()) {
			w.sayExpired(c)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = time.Time{} // the start may replace the files
}

func (w *Watch) sayExpired(c certificate) {
	w.say(c, "expired", func() {
		w.log.Error("a certificate has expired", "file", c.source.Name, "kind", c.source.Kind, "at", c.end.UTC())
	})
}

// say logs unless the same was logged not long ago.
func (w *Watch) say(c certificate, what string, log func()) {
	w.mu.Lock()
	last, now := w.said[c.source.Name], w.now()
	again := last.what == what && now.Sub(last.at) < repeatEvery
	if !again {
		w.said[c.source.Name] = remark{what, now}
	}
	w.mu.Unlock()
	if !again {
		log()
	}
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) { to <- w.desc }

// Collect implements prometheus.Collector.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	for _, c := range w.certificates() {
		if c.err == nil {
			to <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(c.end.Unix()), c.source.Name, string(c.source.Kind))
		}
	}
}

// certificates reads all files, unless that was done a moment ago.
func (w *Watch) certificates() []certificate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); w.read.IsZero() || now.Sub(w.read) >= readEvery {
		w.found, w.read = make([]certificate, len(w.sources)), now
		for i, s := range w.sources {
			w.found[i] = s.certificate()
		}
	}
	return w.found
}

// certificate reads the file.
func (s Source) certificate() certificate {
	read := s.Read
	if read == nil {
		read = func() ([]byte, error) { return os.ReadFile(s.Name) }
	}
	content, err := read()
	if err != nil {
		return certificate{source: s, err: err}
	}
	c := certificate{source: s, err: errors.New("it has no certificate")}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "CERTIFICATE") {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return certificate{source: s, err: err}
		}
		if c.err != nil || one.NotAfter.Before(c.end) == (s.Kind == Own) {
			c = certificate{source: s, end: one.NotAfter, life: one.NotAfter.Sub(one.NotBefore)}
		}
	}
	return c
}

var _ prometheus.Collector = (*Watch)(nil)
