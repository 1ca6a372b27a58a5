package admission

import (
	"slices"

	"github.com/portico-platform/portico/admission/internal/config"
	"github.com/portico-platform/portico/admission/internal/events"
	"github.com/portico-platform/portico/admission/internal/images"
	"github.com/portico-platform/portico/admission/internal/nodeselector"
	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/admission/internal/podstandards"
	"github.com/portico-platform/portico/admission/internal/tolerations"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/vocabulary"
)

// configured is what the configuration file says.
type configured struct {
	plugin.Config
	given map[string]bool // the plugins that have a configuration
}

// readers read the configurations of plugins, by name, into c.
func readers(c *plugin.Config) map[string]func(config.Document) error {
	return map[string]func(config.Document) error{
		"EventRateLimit":             into(&c.EventLimits, events.Parse),
		"ImagePolicyWebhook":         into(&c.ImagePolicy, images.Parse),
		"MutatingAdmissionWebhook":   into(&c.MutatingAs, webhook.ParseIdentities),
		"ValidatingAdmissionWebhook": into(&c.ValidatingAs, webhook.ParseIdentities),
		"PodNodeSelector":            into(&c.NodeSelectors, nodeselector.Parse),
		"PodSecurity":                into(&c.PodStandards, podstandards.Parse),
		"PodTolerationRestriction":   into(&c.Tolerations, tolerations.Parse),
		"ResourceQuota":              into(&c.Limited, usage.ParseLimited),
	}
}

// into returns a reader that puts what it reads into a variable.
func into[T any](variable *T, parse func(config.Document) (T, error)) func(config.Document) error {
	return func(d config.Document) (err error) {
		*variable, err = parse(d)
		return err
	}
}

// configure reads the configuration file, if there is one. The documents of plugins that
// are off are checked as well. Its errors name the file and the field.
func configure(file string, known []plugin.Plugin, v vocabulary.Vocabulary) (configured, error) {
	c := configured{given: map[string]bool{}}
	if file == "" {
		return c, nil
	}
	documents, err := config.Read(file, v)
	if err != nil {
		return c, run.Usagef("--admission-control-config-file: %v", err)
	}
	all := readers(&c.Config)
	for _, d := range documents {
		read, reads := all[d.Plugin]
		switch {
		case !slices.ContainsFunc(known, func(p plugin.Plugin) bool { return p.Name == d.Plugin && !p.Always }):
			err = d.Unusable("there is no plugin %q", d.Plugin)
		case !d.Given: // it is only named
		case !reads:
			err = d.Unusable("plugin %q reads no configuration", d.Plugin)
		default:
			err = read(d)
			c.given[d.Plugin] = true
		}
		if err != nil {
			return c, run.Usagef("--admission-control-config-file: %v", err)
		}
	}
	return c, nil
}

// checkConfigured refuses to turn on plugins that lack the configuration that they need.
func checkConfigured(on []plugin.Plugin, c configured) error {
	for _, p := range on {
		if p.Configured && !c.given[p.Name] {
			return run.Usagef("--enable-admission-plugins: %s needs a configuration in --admission-control-config-file", p.Name)
		}
	}
	return nil
}
