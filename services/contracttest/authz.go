package contracttest

import (
	"testing"

	"github.com/portico-platform/portico/services"
)

// AuthzExample holds the requests that the implementation under test is set up for.
type AuthzExample struct {
	Allowed services.Attributes
	// Refused is not allowed: denied, or no opinion.
	Refused services.Attributes
	// Rules is for a user who has rules in the namespace.
	Rules services.RulesRequest
}

// Authz is the conformance suite of services.Authz.
func Authz(t *testing.T, open func(*testing.T) services.Authz, example AuthzExample) {
	authz := open(t)
	decide := func(t *testing.T, a services.Attributes) services.Decision {
		d, err := authz.Authorize(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed && d.Denied {
			t.Errorf("%+v is both allowed and denied", a)
		}
		return d
	}
	t.Run("an allowed request is allowed", func(t *testing.T) {
		if d := decide(t, example.Allowed); !d.Allowed {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("a refused request is a decision and not an error", func(t *testing.T) {
		if d := decide(t, example.Refused); d.Allowed {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("an empty request is not allowed", func(t *testing.T) {
		if d := decide(t, services.Attributes{}); d.Allowed {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("rules list what a user may do", func(t *testing.T) {
		rules, err := authz.Rules(t.Context(), example.Rules)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.Resource)+len(rules.NonResource) == 0 {
			t.Error("got no rules")
		}
		if rules.EvaluationError != "" && !rules.Incomplete {
			t.Errorf("complete in spite of %q", rules.EvaluationError)
		}
	})
}
