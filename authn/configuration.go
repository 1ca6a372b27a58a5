package authn

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/portico-platform/portico/authn/internal/config"
	"github.com/portico-platform/portico/authn/internal/issuers"
	"github.com/portico-platform/portico/authn/internal/method"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/configfile"
)

const (
	// configurationEvery is how often the file of --authentication-config is read.
	configurationEvery = time.Second
	// discoveredWithin is how long the issuers of a new file may take to be discovered before
	// that counts as a failure. They are still tried then.
	discoveredWithin = time.Minute
)

// configuration authenticates ID tokens by the issuers of the file of --authentication-config. A
// new file replaces them once its issuers are discovered, unless it is invalid.
type configuration struct {
	file     *configfile.File[*config.File]
	settings issuers.Settings
	log      *slog.Logger
	// opened is the content at the start.
	opened  *config.File
	used    *configfile.Content[*config.File]
	current atomic.Pointer[issuers.Set]
	// pending are the issuers of a new file.
	pending *candidate
}

// candidate are issuers that are being discovered.
type candidate struct {
	*issuers.Set
	of     *configfile.Content[*config.File]
	until  time.Time
	cancel context.CancelFunc
}

// openConfiguration reads the file.
func openConfiguration(path string, parser *config.Parser, settings issuers.Settings, metrics prometheus.Registerer) (c *configuration, err error) {
	c = &configuration{settings: settings, log: settings.Log}
	c.file, err = configfile.Open(configfile.Config[*config.File]{Subject: "authentication", Path: path,
		Parse: parser.Parse, Replaceable: c.replaceable, Metrics: metrics, Log: settings.Log})
	if err != nil {
		return nil, err
	}
	c.used = c.file.Get()
	c.opened = c.used.Value
	c.current.Store(issuers.New(c.opened.Issuers, settings))
	return c, nil
}

// replaceable returns an error if a new file needs a restart.
func (c *configuration) replaceable(file *config.File) error {
	if !reflect.DeepEqual(file.Anonymous, c.opened.Anonymous) {
		return errors.New("anonymous: Forbidden: changed from initial configuration file")
	}
	return nil
}

// anonymous returns which requests without credentials are anonymous, nil if the file does not
// say.
func (c *configuration) anonymous() *apiserver.AnonymousAuthConfig { return c.opened.Anonymous }

// run discovers issuers, and reads the file again until ctx ends.
func (c *configuration) run(ctx context.Context) error {
	first, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := cancel                                  // ends the discovery of those in use
	go func() { _ = c.current.Load().Run(first) }() // it returns no error
	tick := time.NewTicker(configurationEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.refresh(ctx)
			if next := c.take(time.Now()); next != nil {
				stop()
				stop = next
			}
		}
	}
}

// refresh reads the file, and begins to discover the issuers of a new one.
func (c *configuration) refresh(ctx context.Context) {
	next := c.file.Get()
	if next == c.used || c.pending != nil && next == c.pending.of {
		return
	}
	if c.pending != nil {
		c.pending.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	c.pending = &candidate{Set: issuers.New(next.Value.Issuers, c.settings), of: next, until: time.Now().Add(discoveredWithin), cancel: cancel}
	go func(s *issuers.Set) { _ = s.Run(ctx) }(c.pending.Set) // it returns no error
}

// take replaces the issuers by new ones that are discovered, and returns what ends their
// discovery.
func (c *configuration) take(now time.Time) context.CancelFunc {
	if c.pending == nil {
		return nil
	}
	if err := c.pending.Discovered(); err != nil {
		if now.After(c.pending.until) {
			c.pending.until = now.Add(discoveredWithin)
			c.file.Failed()
			c.log.Warn("issuers of the new authentication configuration are not discovered, keeping those in use", "error", err)
		}
		return nil
	}
	next := c.pending
	c.pending = nil
	before := c.current.Swap(next.Set)
	for _, url := range before.URLs() {
		if !slices.Contains(next.URLs(), url) {
			c.settings.Metrics.Forget(url)
		}
	}
	c.used = next.of
	c.file.Used(next.of)
	c.log.Info("authentication configuration in use", "issuers", len(next.of.Value.Issuers))
	return next.cancel
}

// Name implements method.Method.
func (c *configuration) Name() string { return c.current.Load().Name() }

// Authenticate implements method.Method.
func (c *configuration) Authenticate(ctx context.Context, r services.Credentials) (services.Authentication, error) {
	return c.current.Load().Authenticate(ctx, r)
}

var _ method.Method = (*configuration)(nil)
