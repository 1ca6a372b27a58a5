package atrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/kit/etcd/atrest/internal/kms"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// pollEvery is the interval at which plugins are considered for a call of Status.
	pollEvery = time.Second
	// patience is how long the plugins may take at the start before a warning is logged.
	patience = 5 * time.Second
	// maxTimeout bounds the timeout of a plugin.
	maxTimeout = time.Minute
)

// shared has the values of a process, so that its services share the seeds.
var shared = run.Contract[*Values]{Name: "encryption of values"}

// Start returns the values of a process as Use does, with health check and metrics, and
// polls its KMS plugins. It waits until each of them has answered once: without them a
// service would take all of their values for damaged. It is called from Service.Start.
func Start(ctx context.Context, n *run.Node) (*Values, error) {
	if shared.Local(n) {
		return shared.Use(ctx, n)
	}
	v, err := Use(n)
	if err != nil {
		return nil, err
	}
	shared.Offer(n, v)
	if v == nil {
		return nil, nil
	}
	n.Health.Add(run.Check{Name: "kms-providers", Probe: func(ctx context.Context) error {
		return v.healthy(context.WithoutCancel(ctx)) // the timeouts of the plugins count
	}})
	n.Metrics.MustRegister(v.plugins)
	n.Go("kms", v.poll)
	return v, v.await(ctx, n)
}

// healthy returns nil if all plugins work.
func (v *Values) healthy(ctx context.Context) error {
	plugins := v.files.Get().plugins
	errs := make(chan error, len(plugins))
	for _, p := range plugins {
		go func() { errs <- p.Check(ctx) }()
	}
	var all []error
	for range plugins {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// poll calls the plugins of the present configuration until ctx ends.
func (v *Values) poll(ctx context.Context) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		v.plugins.Poll(ctx, v.files.Get().plugins)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// await waits until all plugins work.
func (v *Values) await(ctx context.Context, n *run.Node) error {
	began, warned := time.Now(), false
	for {
		err := v.healthy(ctx)
		if err == nil {
			return nil
		}
		if !warned && time.Since(began) > patience {
			n.Log.Warn("waiting for KMS plugins", "error", err)
			warned = true
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("waiting for KMS plugins: %w", err)
		}
	}
}

// parsing is a configuration that is being read.
type parsing struct {
	plugins *kms.Providers
	used    []*kms.Provider
	names   map[string]bool // of plugins
}

// parseKMS returns the key of a provider kms.
func (c *parsing) parseKMS(field string, raw []byte) ([]key, error) {
	var f struct {
		APIVersion string           `json:"apiVersion"`
		Name       string           `json:"name"`
		CacheSize  json.RawMessage  `json:"cachesize"`
		Endpoint   string           `json:"endpoint"`
		Timeout    *metav1.Duration `json:"timeout"`
	}
	if err := strictly(raw, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	spec := kms.Spec{Name: f.Name, Endpoint: f.Endpoint, Timeout: 3 * time.Second}
	if f.Timeout != nil {
		spec.Timeout = f.Timeout.Duration
	}
	switch {
	case f.APIVersion == "" || f.APIVersion == "v1":
		return nil, fmt.Errorf("%s.apiVersion: v1, which is the default, is not supported: use v2", field)
	case f.APIVersion != "v2":
		return nil, fmt.Errorf("%s.apiVersion: %q is not supported: use v2", field, f.APIVersion)
	case f.CacheSize != nil:
		return nil, fmt.Errorf("%s.cachesize: not supported with v2", field)
	case spec.Timeout <= 0 || spec.Timeout > maxTimeout:
		return nil, fmt.Errorf("%s.timeout: %s is not more than 0 and at most %s", field, spec.Timeout, maxTimeout)
	case c.names[f.Name]:
		return nil, fmt.Errorf("%s.name: %q is the name of an earlier provider kms", field, f.Name)
	}
	if err := checkName(f.Name); err != nil {
		return nil, fmt.Errorf("%s.name: %w", field, err)
	}
	if _, err := kms.Socket(f.Endpoint); err != nil {
		return nil, fmt.Errorf("%s.endpoint: %w", field, err)
	}
	p, err := c.plugins.Get(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	c.names[f.Name] = true
	c.used = append(c.used, p)
	return []key{{Prefix + "kms:v2:" + f.Name + ":", remote{p}}}, nil
}

// remote encrypts with the help of a KMS plugin.
type remote struct{ provider *kms.Provider }

func (r remote) seal(plain, about []byte) ([]byte, error)  { return r.provider.Seal(plain, about) }
func (r remote) open(sealed, about []byte) ([]byte, error) { return r.provider.Open(sealed, about) }
func (r remote) stale(sealed []byte) bool                  { return r.provider.Stale(sealed) }
