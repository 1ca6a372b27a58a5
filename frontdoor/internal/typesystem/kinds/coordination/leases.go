package coordination

import (
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// oldest is the strategy that chooses the candidate with the oldest emulated version. The
// names of all other strategies are qualified.
const oldest = "OldestEmulationVersion"

// candidateVersions checks the versions of a candidate, which the strategy compares.
func candidateVersions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	parse := func(name string) (version semver.Version, given bool) {
		text := rules.Text(m, name)
		if text == "" {
			return version, false
		}
		version, err := semver.Parse(text)
		if err != nil {
			c.Invalid(at.Field(name), text, "must be a valid semantic version")
		}
		return version, true
	}
	emulated, hasEmulated := parse("emulationVersion")
	binary, hasBinary := parse("binaryVersion")
	if hasEmulated && hasBinary && binary.LT(emulated) {
		c.Invalid(at.Field("binaryVersion"), rules.Text(m, "binaryVersion"), "must be greater than or equal to `emulationVersion`")
	}
	if rules.Text(m, "strategy") == oldest && emulated.EQ(semver.Version{}) {
		c.Required(at.Field("emulationVersion"), "must be specified when `strategy` is 'OldestEmulationVersion'")
	}
}

// candidateStrategy checks the strategy of a candidate, which is required.
func candidateStrategy(c *rules.Check, m, old map[string]any, at *field.Path) {
	if rules.Text(m, "strategy") != "" {
		leaseStrategy(c, m, old, at)
	}
}

// leaseStrategy checks the strategy of a lease or of a candidate. Its path has the name of the
// field twice, as in Kubernetes.
func leaseStrategy(c *rules.Check, m, _ map[string]any, at *field.Path) {
	strategy, given := m["strategy"].(string)
	if !given {
		return
	}
	at = at.Field("strategy").Field("strategy")
	if !strings.Contains(strategy, "/") {
		if strategy != oldest {
			c.NotSupported(at, strategy, oldest)
		}
		return
	}
	for _, problem := range validation.IsQualifiedName(strategy) {
		c.Invalid(at, strategy, problem)
	}
}

// preferredHolder checks that a lease for which a holder is preferred has a strategy.
func preferredHolder(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Text(m, "preferredHolder") != "" && rules.Text(m, "strategy") == "" {
		c.Forbidden(at.Field("preferredHolder"), "may only be specified if `strategy` is defined")
	}
}
