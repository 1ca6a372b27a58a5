package admission

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// chain shows every request to its plugins, in their order; the first that
// refuses ends it.
type chain struct {
	plugins []plugin.Plugin
}

// Mutate implements services.Admission. When a webhook has changed the object, all
// plugins see it once more.
func (c *chain) Mutate(ctx context.Context, request services.AdmissionRequest) (services.AdmissionResponse, error) {
	r := review.New(request)
	for again := true; again; again = r.NextRound() {
		for _, p := range c.plugins {
			if p.Mutate == nil {
				continue
			}
			if err := p.Mutate(ctx, r); err != nil {
				return r.Notes(), err
			}
		}
	}
	return r.Response()
}

// Validate implements services.Admission.
func (c *chain) Validate(ctx context.Context, request services.AdmissionRequest) (services.AdmissionResponse, error) {
	r := review.New(request)
	for _, p := range c.plugins {
		if p.Validate == nil {
			continue
		}
		if err := p.Validate(ctx, r); err != nil {
			return r.Notes(), err
		}
	}
	return r.Response()
}

// choice is what the flags say about plugins, by name.
type choice struct{ enable, disable []string }

// choose returns the plugins of a table that are on. Its errors name the flag and
// the plugin that does not fit.
func choose(table []plugin.Plugin, c choice) ([]plugin.Plugin, error) {
	on := map[string]bool{}
	for _, p := range table {
		if !p.Always {
			on[p.Name] = p.Default
		}
	}
	said := map[string]bool{}
	for _, name := range c.enable {
		if _, known := on[name]; !known {
			return nil, unknown("--enable-admission-plugins", name)
		}
		on[name], said[name] = true, true
	}
	for _, name := range c.disable {
		if _, known := on[name]; !known {
			return nil, unknown("--disable-admission-plugins", name)
		}
		if said[name] {
			return nil, contradiction(name)
		}
		on[name] = false
	}
	var chosen []plugin.Plugin
	for _, p := range table {
		if p.Always || on[p.Name] {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

var _ services.Admission = (*chain)(nil)
