package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/release"
)

// RuntimeConfig selects the served group versions: the values of --runtime-config by key
// (section "Groups and paths"). Keys are api/all, api/ga, api/beta, api/alpha,
// <group>/<version> (api/v1 or v1 for the core group) and <group>/<version>/<resource>. The
// zero value serves all but alpha versions, and from betasOff on all but alpha and beta
// versions.
type RuntimeConfig map[string]bool

// ParseRuntimeConfig parses the values of the flag: each may hold several settings,
// separated by commas; a key without a value means true.
func ParseRuntimeConfig(values ...string) (RuntimeConfig, error) {
	config := RuntimeConfig{}
	for _, setting := range strings.Split(strings.Join(values, ","), ",") {
		setting = strings.TrimSpace(setting)
		if setting == "" {
			continue
		}
		key, text, given := strings.Cut(setting, "=")
		if !given {
			text = "true"
		}
		value, err := strconv.ParseBool(text)
		if err != nil || key == "" {
			return nil, fmt.Errorf("%q: write <key>, <key>=true or <key>=false", setting)
		}
		if key == "v1" || strings.HasPrefix(key, "v1/") {
			key = "api/" + key
		}
		config[key] = value
	}
	return config, nil
}

// stability returns the key of a version's stability level.
func stability(version string) string {
	switch {
	case strings.Contains(version, "alpha"):
		return "api/alpha"
	case strings.Contains(version, "beta"):
		return "api/beta"
	}
	return "api/ga"
}

// betasOff is the first release that serves no beta version unless a flag enables it.
var betasOff, _ = release.Of("1.24")

// serves reports whether a type is served; the most specific key takes precedence.
func (c RuntimeConfig) serves(t *Type, r release.Release) bool {
	version := configKey(t)
	for _, key := range []string{version + "/" + t.Resource, version, stability(t.Version), "api/all"} {
		if value, ok := c[key]; ok {
			return value
		}
	}
	switch stability(t.Version) {
	case "api/alpha":
		return false
	case "api/beta":
		return r.Before(betasOff)
	}
	return true
}

// check returns an error for a key that matches no type.
func (c RuntimeConfig) check(types []*Type) error {
	known := map[string]bool{"api/all": true, "api/ga": true, "api/beta": true, "api/alpha": true}
	for _, t := range types {
		known[configKey(t)] = true
		known[configKey(t)+"/"+t.Resource] = true
	}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if !known[key] {
			return fmt.Errorf("unknown group version or resource %q", key)
		}
	}
	return nil
}

func configKey(t *Type) string {
	if t.Group == "" {
		return "api/" + t.Version
	}
	return t.APIVersion()
}
