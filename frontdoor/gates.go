package frontdoor

import (
	"log/slog"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/services/kit/run"
)

// parseGates parses --feature-gates (section "Stability levels") and logs a warning for
// each deprecated gate.
func parseGates(given map[string]string, log *slog.Logger) (features.Gates, error) {
	gates, warnings, err := features.Parse(given)
	if err != nil {
		return gates, run.Usagef("--feature-gates: %v", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return gates, nil
}
