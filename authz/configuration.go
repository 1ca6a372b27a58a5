package authz

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/authz/internal/config"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/configfile"
	"github.com/portico-platform/portico/services/kit/retry"
)

// configurationEvery is how often the file of --authorization-config is read.
const configurationEvery = time.Second

// configuration asks the authorizers of the file of --authorization-config. A new file
// replaces them, unless it is invalid.
type configuration struct {
	file    *configfile.File[[]config.Authorizer]
	types   []string                  // of the authorizers at the start
	modes   map[string]services.Authz // all but webhooks
	used    *configfile.Content[[]config.Authorizer]
	current atomic.Pointer[chain]
}

// openConfiguration reads the file. The authorizers must not be called before use.
func openConfiguration(path string, parser *config.Parser, metrics prometheus.Registerer, log *slog.Logger) (c *configuration, err error) {
	c = &configuration{}
	c.file, err = configfile.Open(configfile.Config[[]config.Authorizer]{Subject: "authorization", Path: path,
		Parse: parser.Parse, Replaceable: c.replaceable, Metrics: metrics, Log: log})
	if err != nil {
		return nil, err
	}
	c.used = c.file.Get()
	for _, a := range c.used.Value {
		c.types = append(c.types, a.Type)
	}
	return c, nil
}

// replaceable returns an error if the authorizers of a new file need a restart: what they
// decide by is only followed from the start, and an edit must not turn roles off.
func (c *configuration) replaceable(all []config.Authorizer) error {
	var types []string
	for i, a := range all {
		types = append(types, a.Type)
		if follows := a.Type == modeRBAC || a.Type == modeNode || a.Type == modeABAC; follows && !slices.Contains(c.types, a.Type) {
			return fmt.Errorf("authorizers[%d].type: %s is not allowed if it was not enabled at the start", i, a.Type)
		}
	}
	for _, name := range c.types {
		if name != modeWebhook && !slices.Contains(types, name) {
			return fmt.Errorf("authorizers: type %s was enabled at the start and is missing", name)
		}
	}
	return nil
}

// use gives the authorizers other than webhooks, by their type.
func (c *configuration) use(modes map[string]services.Authz) {
	c.modes = modes
	c.assemble()
}

// assemble puts the authorizers of the file in use.
func (c *configuration) assemble() {
	var all chain
	for _, a := range c.used.Value {
		if a.Webhook != nil {
			all = append(all, mode{a.Name, a.Webhook})
			continue
		}
		all = append(all, mode{a.Type, c.modes[a.Type]})
	}
	c.current.Store(&all)
}

// refresh reads the file again.
func (c *configuration) refresh() {
	next := c.file.Get()
	if next == c.used {
		return
	}
	c.used = next
	c.assemble()
	c.file.Used(next)
}

// run reads the file again until ctx ends.
func (c *configuration) run(ctx context.Context) error {
	retry.Every(ctx, configurationEvery, func(context.Context) error {
		c.refresh()
		return nil
	}, nil) // which never fails
	return nil
}

// Authorize implements services.Authz. A decision must not be kept: the next file may
// change it.
func (c *configuration) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	d, err := c.current.Load().Authorize(ctx, a)
	if !unrestricted(a.User) {
		d.Revision = 0
	}
	return d, err
}

// AuthorizeBatch implements services.AuthzBatch, with decisions as of Authorize.
func (c *configuration) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	results, err := c.current.Load().AuthorizeBatch(ctx, requests)
	for i := range results {
		if !unrestricted(requests[i].User) {
			results[i].Revision = 0
		}
	}
	return results, err
}

// Rules implements services.Authz.
func (c *configuration) Rules(ctx context.Context, r services.RulesRequest) (services.Rules, error) {
	return c.current.Load().Rules(ctx, r)
}

var (
	_ services.Authz      = (*configuration)(nil)
	_ services.AuthzBatch = (*configuration)(nil)
)
