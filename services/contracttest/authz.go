package contracttest

import (
	"context"
	"errors"
	"math"
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
	t.Run("a revision that does not come is not awaited for long", func(t *testing.T) {
		a := example.Allowed
		a.NotBefore = math.MaxInt64 - 1
		if d := decide(t, a); !d.Allowed {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("requests of a batch are decided as single ones", func(t *testing.T) { authzBatches(t, authz, example) })
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

// authzBatches decides many requests together, whether or not the implementation knows batches.
func authzBatches(t *testing.T, authz services.Authz, example AuthzExample) {
	var requests []services.Attributes
	for len(requests) <= services.MaxAuthzBatch {
		requests = append(requests, example.Allowed, example.Refused, services.Attributes{}, example.Allowed)
	}
	results := services.AuthorizeAll(t.Context(), authz, requests)
	if len(results) != len(requests) {
		t.Fatalf("%d results for %d requests", len(results), len(requests))
	}
	for i, r := range results {
		single, err := authz.Authorize(t.Context(), requests[i])
		if err != nil || r.Err != nil || r.Allowed != single.Allowed || r.Denied != single.Denied || r.Reason != single.Reason {
			t.Fatalf("request %d: %+v in a batch; alone %+v, %v", i, r, single, err)
		}
	}
	batch, ok := authz.(services.AuthzBatch)
	if !ok {
		return
	}
	if none, err := batch.AuthorizeBatch(t.Context(), nil); err == nil && len(none) != 0 {
		t.Errorf("no requests: %+v", none)
	}
	if _, err := batch.AuthorizeBatch(t.Context(), requests); !errors.Is(err, services.ErrNoBatch) {
		wantReason(t, err, services.ReasonBadRequest)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, r := range services.AuthorizeAll(ended, authz, []services.Attributes{example.Allowed}) {
		if r.Err == nil {
			t.Error("decided after the end of the context")
		}
	}
}
