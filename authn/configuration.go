package authn

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/portico-platform/portico/services/reload"
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
	files    *reload.Files[*content]
	settings issuers.Settings
	reloads  *reloads
	log      *slog.Logger
	// opened is the content at the start.
	opened  *content
	used    *content
	current atomic.Pointer[issuers.Set]
	// pending are the issuers of a new file.
	pending *candidate
}

// content is that of one file.
type content struct {
	*config.File
	hash string
}

// candidate are issuers that are being discovered.
type candidate struct {
	*issuers.Set
	of     *content
	until  time.Time
	cancel context.CancelFunc
}

// openConfiguration reads the file.
func openConfiguration(path string, parser *config.Parser, settings issuers.Settings, reloads *reloads) (c *configuration, err error) {
	c = &configuration{settings: settings, reloads: reloads, log: settings.Log}
	c.files, err = reload.Open(reload.Config[*content]{What: "authentication configuration", Paths: []string{path}, Log: settings.Log,
		Parse: func(files [][]byte) (*content, error) {
			file, err := parser.Parse(files[0])
			if err == nil && c.opened != nil && !reflect.DeepEqual(file.Anonymous, c.opened.Anonymous) {
				err = errors.New("anonymous: Forbidden: changed from initial configuration file")
			}
			if err != nil {
				if c.opened != nil {
					reloads.failed()
				}
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return &content{file, issuers.Hash(files[0])}, nil
		}})
	if err != nil {
		return nil, err
	}
	c.opened = c.files.Get()
	c.used = c.opened
	c.current.Store(issuers.New(c.used.Issuers, settings))
	reloads.inUse(c.used.hash)
	return c, nil
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
	next := c.files.Get()
	if next == c.used || c.pending != nil && next == c.pending.of {
		return
	}
	if c.pending != nil {
		c.pending.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	c.pending = &candidate{Set: issuers.New(next.Issuers, c.settings), of: next, until: time.Now().Add(discoveredWithin), cancel: cancel}
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
			c.reloads.failed()
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
	c.reloads.succeeded(next.of.hash)
	c.log.Info("authentication configuration in use", "issuers", len(next.of.Issuers))
	return next.cancel
}

// Name implements method.Method.
func (c *configuration) Name() string { return c.current.Load().Name() }

// Authenticate implements method.Method.
func (c *configuration) Authenticate(ctx context.Context, r services.Credentials) (services.Authentication, error) {
	return c.current.Load().Authenticate(ctx, r)
}

var _ method.Method = (*configuration)(nil)

// reloads are the metrics of the file, with the names of Kubernetes.
type reloads struct {
	total *prometheus.CounterVec
	last  *prometheus.GaugeVec
	info  *prometheus.GaugeVec
}

func newReloads(registry *prometheus.Registry) *reloads {
	const prefix = "apiserver_authentication_config_controller_"
	r := &reloads{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "automatic_reloads_total",
			Help: "New contents of --authentication-config, by status: success, or failure if they were refused."}, []string{"status"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "When new contents of --authentication-config were last used or refused."}, []string{"status"}),
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "last_config_info",
			Help: "The hash of the --authentication-config in use."}, []string{"hash"}),
	}
	registry.MustRegister(r.total, r.last, r.info)
	return r
}

func (r *reloads) failed() { r.count("failure") }

func (r *reloads) succeeded(hash string) {
	r.count("success")
	r.inUse(hash)
}

func (r *reloads) count(status string) {
	r.total.WithLabelValues(status).Inc()
	r.last.WithLabelValues(status).SetToCurrentTime()
}

func (r *reloads) inUse(hash string) {
	r.info.Reset()
	r.info.WithLabelValues(hash).Set(1)
}
