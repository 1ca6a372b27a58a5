package pods

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// podAddresses makes podIP the first of podIPs, for clients that only know podIP. If both
// are given and differ, podIP wins.
func podAddresses(m map[string]any, _ vocabulary.Vocabulary) {
	one, all := rules.Text(m, "podIP"), rules.Objects(m, "podIPs")
	switch {
	case one != "" && (len(all) == 0 || rules.Text(all[0], "ip") != one):
		m["podIPs"] = []any{map[string]any{"ip": one}}
	case one == "" && len(all) > 0:
		m["podIP"] = rules.Text(all[0], "ip")
	}
}
