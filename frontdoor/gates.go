package frontdoor

import (
	"log/slog"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
)

// parseGates parses --feature-gates of a release (section "Stability levels") and logs a warning for
// each deprecated gate.
func parseGates(r release.Release, given map[string]string, log *slog.Logger) (features.Gates, error) {
	gates, warnings, err := features.Parse(r, given)
	if err != nil {
		return gates, run.Usagef("--feature-gates: %v", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return gates, nil
}
