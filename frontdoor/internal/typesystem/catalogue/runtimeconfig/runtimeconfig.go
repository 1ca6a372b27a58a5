// Package runtimeconfig parses --runtime-config and decides which group versions it selects (section
// "Groups and paths"). It knows no types: the catalogue names them.
package runtimeconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/release"
)

// Config selects the served group versions: the values of --runtime-config by key
// (section "Groups and paths"). Keys are api/all, api/ga, api/beta, api/alpha,
// <group>/<version> (api/v1 or v1 for the core group) and <group>/<version>/<resource>. The
// zero value serves all but alpha versions, and from betasOff on all but alpha and beta
// versions.
type Config map[string]bool

// Parse parses the values of the flag: each may hold several settings,
// separated by commas; a key without a value means true.
func Parse(values ...string) (Config, error) {
	config := Config{}
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

// Type names a type.
type Type struct{ Group, Version, Resource string }

// Serves reports whether a release serves a type; the most specific key takes precedence.
func (c Config) Serves(t Type, r release.Release) bool {
	version := t.key()
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

// Check returns an error for a key that matches no type.
func (c Config) Check(types []Type) error {
	known := map[string]bool{"api/all": true, "api/ga": true, "api/beta": true, "api/alpha": true}
	for _, t := range types {
		known[t.key()] = true
		known[t.key()+"/"+t.Resource] = true
	}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if !known[key] {
			return fmt.Errorf("unknown group version or resource %q", key)
		}
	}
	return nil
}

// key returns the key of the group version.
func (t Type) key() string {
	if t.Group == "" {
		return "api/" + t.Version
	}
	return t.Group + "/" + t.Version
}
