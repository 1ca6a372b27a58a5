package admission_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// TestDeniedNetworks: a webhook in a network of --webhook-deny-cidrs is a failed call.
func TestDeniedNetworks(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "validating", "a", s.hook("x", "failurePolicy: Fail"))
	configure(t, c, "mutating", "a", s.hook("x", "failurePolicy: Ignore"))
	a := started(t, c, "--webhook-deny-cidrs=192.168.0.0/16,127.0.0.0/8")
	_, err := a.Validate(t.Context(), create("here"))
	if refusal := services.AsStatus(err); refusal == nil || refusal.Code != 500 || !strings.Contains(refusal.Message, "address not allowed: 127.0.0.1 is in 127.0.0.0/8") {
		t.Error(err)
	}
	if _, err := a.Mutate(t.Context(), create("here")); err != nil || len(s.calls()) > 0 {
		t.Error(err)
	}
	if _, err := started(t, c, "--webhook-deny-cidrs=192.168.0.0/16").Validate(t.Context(), create("here")); err != nil || len(s.calls()) != 1 {
		t.Error(err)
	}
	if _, err := start(t, c, "--webhook-deny-cidrs=here"); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "--webhook-deny-cidrs") {
		t.Error(err)
	}
}
