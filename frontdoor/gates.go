package frontdoor

import (
	"strconv"

	"github.com/portico-platform/portico/services/kit/run"
)

// gates holds the feature gates of the service (section "Stability levels").
type gates struct {
	serverSideApply bool
}

// parseGates parses --feature-gates. Unknown gates, including removed ones, are errors.
func parseGates(given map[string]string) (gates, error) {
	g := gates{serverSideApply: true}
	known := map[string]*bool{"ServerSideApply": &g.serverSideApply}
	for name, text := range given {
		gate, ok := known[name]
		if !ok {
			return g, run.Usagef("--feature-gates: unrecognized feature gate: %s", name)
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			return g, run.Usagef("--feature-gates: invalid value of %s: %q: must be true or false", name, text)
		}
		*gate = on
	}
	return g, nil
}
