package frontdoor

import (
	"slices"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/authfilters"
)

// TestStageOrder checks the ordering constraints between the stages.
func TestStageOrder(t *testing.T) {
	var order []string
	for _, s := range (&door{access: &authfilters.Control{}}).stages() {
		order = append(order, s.Name)
	}
	for _, c := range []struct{ first, then, why string }{
		{"shared", "identified", "web pages can read errors too"},
		{"recovered", "shared", "preflight requests are counted"},
		{"recovered", "identified", "an unknown path is answered with a Status too"},
		{"identified", "authorized", "authorization asks about what the path names"},
		{"identified", "traced", "a span is named after what the path names"},
		{"authenticated", "joined", "who may have a trace continued depends on the caller"},
		{"joined", "impersonated", "impersonation is part of the trace"},
		{"audited", "identified", "a request whose path is refused is on record"},
		{"audited", "bounded", "a request whose timeout is refused is on record"},
		{"audited", "authenticated", "a refused login is on record"},
		{"audited", "probed", "health checks are on record too"},
		{"probed", "authenticated", "health is told when authn is away"},
		{"authenticated", "matched", "the rules of the audit policy name users"},
		{"matched", "impersonated", "the rules of the audit policy are about who calls"},
		{"authenticated", "impersonated", "only a known caller may act as somebody else"},
		{"impersonated", "authorized", "the impersonated user is who needs the permission"},
		{"impersonated", "timed", "the impersonated user is who may have timings"},
		{"timed", "authorized", "authorization is timed"},
		{"impersonated", "limited", "the share is that of the user who acts"},
		{"authorized", "received", "nobody's body is read who may not send it"},
		{"received", "limited", "a slow sender holds no seat"},
		{"limited", "permitted", "only a request with a seat may ask for a decision about every namespace"},
		{"permitted", "registered", "a watch ends when one of these decisions changes"},
	} {
		a, b := slices.Index(order, c.first), slices.Index(order, c.then)
		if a < 0 || b < 0 || a > b {
			t.Errorf("%s must come before %s: %s; the order is %v", c.first, c.then, c.why, order)
		}
	}
}
