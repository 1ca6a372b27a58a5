// Package legacytokens records when service account tokens in Secrets are used, in a label of the Secret, so
// that unused ones can be found. Its writes skip authorization and admission. It serves "Authentication" of the
// specification.
package legacytokens

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// writeTimeout bounds how long a request waits until its use of a token is recorded, once a day
// for each token.
const writeTimeout = time.Second

// Config configures a Recorder.
type Config struct {
	Authn      services.Authn
	Vocabulary vocabulary.Vocabulary
	// Writes and Engine return those of the front door, which begin to exist after the Recorder.
	Writes  func() *writes.Handlers
	Engine  func() *typesystem.Engine
	Now     func() time.Time
	Log     *slog.Logger
	Metrics *prometheus.Registry
}

// Recorder authenticates with another service, and records the uses of tokens.
type Recorder struct {
	Config
	generated, manual, invalid prometheus.Counter
}

// New returns a Recorder. Its metrics have the names of Kubernetes.
func New(c Config) *Recorder {
	counter := func(name, help string) prometheus.Counter {
		counter := prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "serviceaccount", Name: name, Help: help})
		c.Metrics.MustRegister(counter)
		return counter
	}
	return &Recorder{Config: c,
		generated: counter("legacy_auto_token_uses_total", "Accepted tokens of Secrets that were made with their service account."),
		manual:    counter("legacy_manual_token_uses_total", "Accepted service account tokens of other Secrets."),
		invalid:   counter("invalid_legacy_auto_token_uses_total", "Service account tokens that were refused because their Secret is marked as invalid."),
	}
}

// Authenticate implements services.Authn.
func (r *Recorder) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	a, err := r.Authn.Authenticate(ctx, c)
	used := a.Legacy
	switch {
	case err != nil:
		if used = services.AsInvalidatedToken(err); used != nil {
			r.invalid.Inc()
		}
	case used != nil && used.Generated:
		r.generated.Inc()
	case used != nil:
		r.manual.Inc()
	}
	if used != nil {
		r.record(ctx, *used)
	}
	return a, err
}

// errReplaced means that another Secret has the name now.
var errReplaced = errors.New("the Secret was replaced")

// record writes today's date into the label of the Secret. A request does not fail if that does: the
// next one tries again. The label is left as it is if another front door, whose date is ahead, has
// written tomorrow's.
func (r *Recorder) record(ctx context.Context, t services.LegacyToken) {
	now := r.Now().UTC()
	today := now.Format(time.DateOnly)
	if t.LastUsed == today || t.LastUsed == now.AddDate(0, 0, 1).Format(time.DateOnly) {
		return
	}
	e := r.Engine()
	secrets, ok := e.Types.ByAPIVersion("v1", "Secret")
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := r.Writes().Amend(ctx, amend.Amendment{Engine: e, Type: secrets, Key: t.Secret, Change: func(secret map[string]any) error {
		meta := strategy.Metadata(secret)
		if meta["uid"] != t.UID {
			return errReplaced
		}
		labels, _ := meta["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
			meta["labels"] = labels
		}
		labels[r.Vocabulary.TokenLastUsed()] = today
		return nil
	}})
	if err != nil && !errors.Is(err, errReplaced) && !services.IsReason(err, services.ReasonNotFound) {
		r.Log.Warn("the use of a service account token is not recorded", "secret", t.Secret, "error", err)
	}
}

var _ services.Authn = (*Recorder)(nil)
