// Package profiles holds the functions about seccomp and AppArmor profiles of pods, in fields
// and in the annotations that older clients set, and about other annotations that affect how a
// pod is run. It serves "Resources and their fields" of the specification.
package profiles

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"appArmorProfile":     appArmorProfile,
		"podAnnotations":      podAnnotations,
		"seccompProfile":      seccompProfile,
		"templateAnnotations": templateAnnotations,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"syncAppArmor": syncAppArmor,
		"syncSeccomp":  syncSeccomp,
	},
}

// Profiles have a localhostProfile if and only if their type is Localhost.
func seccompProfile(c *rules.Check, m, _ map[string]any, at *field.Path) {
	profile(c, m, at, "seccomp")
}

// longestPath limits the names of AppArmor profiles, in bytes.
const longestPath = 4095

func appArmorProfile(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch m["type"] {
	case "Localhost", "RuntimeDefault", "Unconfined":
		profile(c, m, at, "AppArmor")
	}
	at = at.Field("localhostProfile")
	name, named := m["localhostProfile"].(string)
	if m["type"] != localhost || !named {
		return
	}
	switch trimmed := strings.TrimSpace(name); {
	case trimmed != name:
		c.Invalid(at, name, "must not be padded with whitespace")
	case name == "":
		c.Required(at, "must be set when AppArmor type is Localhost")
	}
	if len(name) > longestPath {
		c.TooLong(at, longestPath)
	}
}

func profile(c *rules.Check, m map[string]any, at *field.Path, system string) {
	switch at, named := at.Field("localhostProfile"), m["localhostProfile"] != nil; {
	case m["type"] == localhost && !named:
		c.Required(at, "must be set when "+system+" type is Localhost")
	case m["type"] != localhost && named:
		shown := any(m)
		if system == "AppArmor" {
			shown = m["localhostProfile"]
		}
		c.Invalid(at, shown, "can only be set when "+system+" type is Localhost")
	}
}
