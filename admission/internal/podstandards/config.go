package podstandards

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/pod-security-admission/api"

	"github.com/portico-platform/portico/admission/internal/config"
)

// Config is what the configuration file says. Its zero value exempts nothing, and allows
// everything in namespaces without labels.
type Config struct {
	Users, Namespaces, RuntimeClasses []string // exempt

	defaults *api.Policy
}

// levels returns the levels of namespaces without labels.
func (c Config) levels() api.Policy {
	if c.defaults != nil {
		return *c.defaults
	}
	privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	return api.Policy{Enforce: privileged, Audit: privileged, Warn: privileged}
}

// exempts reports whether a namespace is exempt.
func (c Config) exempts(namespace string) bool { return slices.Contains(c.Namespaces, namespace) }

// Parse reads the configuration of the plugin.
func Parse(d config.Document) (Config, error) {
	var read struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Defaults   struct {
			Enforce        string `json:"enforce"`
			EnforceVersion string `json:"enforce-version"`
			Audit          string `json:"audit"`
			AuditVersion   string `json:"audit-version"`
			Warn           string `json:"warn"`
			WarnVersion    string `json:"warn-version"`
		} `json:"defaults"`
		Exemptions struct {
			Usernames      []string `json:"usernames"`
			Namespaces     []string `json:"namespaces"`
			RuntimeClasses []string `json:"runtimeClasses"`
		} `json:"exemptions"`
	}
	const group, kind = "pod-security.admission.config.", "PodSecurityConfiguration"
	if err := d.DecodeVersion(&read, config.Version{Group: group, Version: "v1", Kind: kind},
		config.Version{Group: group, Version: "v1beta1", Kind: kind}, config.Version{Group: group, Version: "v1alpha1", Kind: kind}); err != nil {
		return Config{}, err
	}
	c := Config{Users: read.Exemptions.Usernames, Namespaces: read.Exemptions.Namespaces, RuntimeClasses: read.Exemptions.RuntimeClasses, defaults: &api.Policy{}}
	for _, mode := range []struct {
		name, level, version string
		into                 *api.LevelVersion
	}{
		{"enforce", read.Defaults.Enforce, read.Defaults.EnforceVersion, &c.defaults.Enforce},
		{"audit", read.Defaults.Audit, read.Defaults.AuditVersion, &c.defaults.Audit},
		{"warn", read.Defaults.Warn, read.Defaults.WarnVersion, &c.defaults.Warn},
	} {
		var err error
		if mode.into.Level, err = api.ParseLevel(cmp.Or(mode.level, string(api.LevelPrivileged))); err != nil {
			return Config{}, d.Invalid("defaults."+mode.name, "%q %v", mode.level, err)
		}
		if mode.into.Version, err = api.ParseVersion(cmp.Or(mode.version, api.VersionLatest)); err != nil {
			return Config{}, d.Invalid("defaults."+mode.name+"-version", "%q %v", mode.version, err)
		}
	}
	for name, exempt := range map[string][]string{"usernames": c.Users, "namespaces": c.Namespaces, "runtimeClasses": c.RuntimeClasses} {
		for i, one := range exempt {
			if one == "" || slices.Contains(exempt[:i], one) {
				return Config{}, d.Invalid(fmt.Sprintf("exemptions.%s[%d]", name, i), "%q is empty or duplicated", one)
			}
		}
	}
	return c, nil
}
