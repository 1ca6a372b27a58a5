package admission

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// chain calls its plugins in order; the first that rejects the request ends it.
type chain struct {
	plugins []plugin.Plugin
	// configured returns the revision through which all changes are known of the objects that
	// configure plugins, such as webhook configurations.
	configured func() int64
	// settled is that of the objects that plugins look at which may be idle in a namespace.
	settled func() int64
}

// Mutate implements services.Admission. If a webhook changed the object, all plugins
// are called a second time.
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
	response, err := r.Response()
	if err != nil {
		return response, err
	}
	if request.Remembers {
		response.Unconcerned, response.UnconcernedHere = c.unconcerned(r)
	}
	if request.ValidateEarly {
		return c.validateEarly(ctx, r, response), nil
	}
	if !request.AndValidate || response.Object != nil || response.Tree != nil || c.needsFinal(r) {
		return response, nil
	}
	switch err := c.validate(ctx, r, c.plugins, true); {
	case errors.Is(err, errFinal):
		return response, nil
	case err != nil:
		return r.Notes(), err
	}
	return validated(response, r), nil
}

// validateEarly validates the object of a response too, which may have been changed, unless a plugin
// needs the final object or would have an effect. If it is refused, the response is as before.
func (c *chain) validateEarly(ctx context.Context, r *review.Review, response services.AdmissionResponse) services.AdmissionResponse {
	var pure []plugin.Plugin
	for _, p := range c.plugins {
		if !p.Effects {
			pure = append(pure, p)
		} else if (p.Concerns == nil || p.Concerns(r)) && (p.Idle == nil || !p.Idle(r)) {
			return response
		}
	}
	response.AuditAnnotations = maps.Clone(response.AuditAnnotations) // to which validation may add
	if c.needsFinal(r) || c.validate(ctx, r, pure, true) != nil {
		return response
	}
	return validated(response, r)
}

// validated returns a response with all notes of a review whose object has been validated.
func validated(response services.AdmissionResponse, r *review.Review) services.AdmissionResponse {
	notes := r.Notes()
	response.Warnings, response.AuditAnnotations, response.Timings, response.Validated = notes.Warnings, notes.AuditAnnotations, notes.Timings, true
	response.Charge = r.Charged()
	return response
}

// Refund implements services.AdmissionRefunds.
func (c *chain) Refund(ctx context.Context, charge []byte) error {
	for _, p := range c.plugins {
		if p.Refund == nil {
			continue
		}
		if err := p.Refund(ctx, charge); err != nil {
			return err
		}
	}
	return nil
}

// needsFinal reports whether a plugin validates the object with its managedFields, which a
// request for both does not have.
func (c *chain) needsFinal(r *review.Review) bool {
	return slices.ContainsFunc(c.plugins, func(p plugin.Plugin) bool { return p.Final && p.Concerns(r) })
}

// unconcerned returns the revision of the configuring objects as of which no plugin is
// concerned with requests like that of a review, or is concerned with them and idle in its namespace,
// then also of the objects in it; 0 if one is concerned.
func (c *chain) unconcerned(r *review.Review) (everywhere, here int64) {
	everywhere = c.configured() // before the configurations are read
	here = min(everywhere, c.settled())
	for _, p := range c.plugins {
		switch {
		case p.Mutate == nil && p.Validate == nil, p.Concerns != nil && !p.Concerns(r):
		case p.Idle != nil && r.Namespace != "" && p.Idle(r):
			everywhere = 0
		default:
			return 0, 0
		}
	}
	return everywhere, here
}

// Validate implements services.Admission.
func (c *chain) Validate(ctx context.Context, request services.AdmissionRequest) (services.AdmissionResponse, error) {
	r := review.New(request)
	if err := c.validate(ctx, r, c.plugins, false); err != nil {
		return r.Notes(), err
	}
	return r.Response()
}

// errFinal ends a request for both when a plugin that needs the final object has become
// concerned meanwhile.
var errFinal = errors.New("a plugin needs the final object")

// validate calls those of some plugins that validate. together means a request for both.
func (c *chain) validate(ctx context.Context, r *review.Review, plugins []plugin.Plugin, together bool) error {
	for _, p := range plugins {
		if p.Validate == nil {
			continue
		}
		if together && p.Final && p.Concerns(r) {
			return errFinal
		}
		if err := p.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// choice holds the plugin names of --enable-admission-plugins and
// --disable-admission-plugins.
type choice struct{ enable, disable []string }

// choose returns the plugins of a table that are on. Its errors are usage errors that
// name the flag and the plugin.
func choose(table []plugin.Plugin, c choice) ([]plugin.Plugin, error) {
	on := map[string]bool{}
	for _, p := range table {
		if !p.Always {
			on[p.Name] = p.Default
		}
	}
	enabled := map[string]bool{}
	for _, name := range c.enable {
		if _, known := on[name]; !known {
			return nil, unknown("--enable-admission-plugins", name)
		}
		on[name], enabled[name] = true, true
	}
	for _, name := range c.disable {
		if _, known := on[name]; !known {
			return nil, unknown("--disable-admission-plugins", name)
		}
		if enabled[name] {
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

// ReviewsTrees implements services.AdmissionOfTrees.
func (c *chain) ReviewsTrees() {}

var (
	_ services.AdmissionOfTrees = (*chain)(nil)
	_ services.AdmissionRefunds = (*chain)(nil)
)
