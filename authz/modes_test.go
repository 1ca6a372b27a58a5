package authz

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services"
)

// opinion is a mode with one answer.
type opinion struct {
	decision services.Decision
	rules    services.Rules
	err      error
}

func (o opinion) Authorize(context.Context, services.Attributes) (services.Decision, error) {
	return o.decision, o.err
}

func (o opinion) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return o.rules, o.err
}

func modesOf(all ...opinion) (c chain) {
	for _, o := range all {
		c = append(c, mode{"m", o})
	}
	return c
}

func TestChain(t *testing.T) {
	allow := opinion{decision: services.Decision{Allowed: true, Reason: "yes"}}
	deny := opinion{decision: services.Decision{Denied: true, Reason: "never"}}
	none := opinion{decision: services.Decision{Reason: "no"}}
	fails := opinion{err: errors.New("unreachable")}
	for name, c := range map[string]struct {
		chain           chain
		allowed, denied bool
		fails           bool
		reason          string
	}{
		"the first allows":           {modesOf(allow, deny), true, false, false, "yes"},
		"the first denies":           {modesOf(deny, allow), false, true, false, "never"},
		"no opinion goes on":         {modesOf(none, allow), true, false, false, "yes"},
		"none has an opinion":        {modesOf(none, none), false, false, false, "no, no"},
		"a failure goes on":          {modesOf(fails, allow), true, false, false, "yes"},
		"a failure is not a refusal": {modesOf(none, fails), false, false, true, "no"},
		"a failure and a denial":     {modesOf(fails, deny), false, true, false, "never"},
	} {
		d, err := c.chain.Authorize(t.Context(), services.Attributes{Verb: "get", Path: "/"})
		if d.Allowed != c.allowed || d.Denied != c.denied || (err != nil) != c.fails || d.Reason != c.reason {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		sameInABatch(t, c.chain, d, err)
	}
	master := services.UserInfo{Name: "root", Groups: []string{services.GroupMasters}}
	if d, err := modesOf(deny).Authorize(t.Context(), services.Attributes{User: master}); err != nil || !d.Allowed {
		t.Errorf("system:masters: %+v, %v", d, err)
	}
}

// TestKeptDecisions: a decision may be kept for as long as those of all modes that it
// depends on.
func TestKeptDecisions(t *testing.T) {
	at := func(revision int64, anyName, allowed bool) opinion {
		return opinion{decision: services.Decision{Allowed: allowed, Revision: revision, AnyName: anyName}}
	}
	for name, c := range map[string]struct {
		chain    chain
		revision int64
		anyName  bool
	}{
		"of one mode":                {modesOf(at(7, true, true)), 7, true},
		"of the earlier ones":        {modesOf(at(5, false, false), at(7, true, true)), 5, false},
		"not of later ones":          {modesOf(at(7, true, true), at(0, false, true)), 7, true},
		"not after a remote service": {modesOf(at(0, false, false), at(7, true, true)), 0, false},
		"not after a failure":        {modesOf(opinion{err: errors.New("unreachable")}, at(7, true, true)), 0, true},
	} {
		d, err := c.chain.Authorize(t.Context(), services.Attributes{})
		if err != nil || d.Revision != c.revision || d.AnyName != c.anyName {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		sameInABatch(t, c.chain, d, err)
	}
}

// sameInABatch decides a request beside those of a member of system:masters, who needs no mode.
func sameInABatch(t *testing.T, c chain, want services.Decision, failure error) {
	t.Helper()
	free := services.Attributes{User: services.UserInfo{Groups: []string{services.GroupMasters}}}
	results, err := c.AuthorizeBatch(t.Context(), []services.Attributes{free, {Verb: "get", Path: "/"}, free})
	if err != nil || len(results) != 3 || !results[0].Allowed || !results[2].Allowed {
		t.Fatalf("%+v, %v", results, err)
	}
	if r := results[1]; r.Decision != want || fmt.Sprint(r.Err) != fmt.Sprint(failure) {
		t.Errorf("in a batch %+v; alone %+v, %v", r, want, failure)
	}
}

func TestRulesOfAllModes(t *testing.T) {
	rule := []services.ResourceRule{{Verbs: []string{"get"}}}
	some := opinion{rules: services.Rules{Resource: rule}}
	unknown := opinion{rules: services.Rules{Incomplete: true, EvaluationError: "not listed"}}
	rules, err := modesOf(some, unknown, some).Rules(t.Context(), services.RulesRequest{})
	if err != nil || len(rules.Resource) != 2 || !rules.Incomplete || rules.EvaluationError != "not listed" {
		t.Errorf("%+v, %v", rules, err)
	}
	master := services.RulesRequest{User: services.UserInfo{Groups: []string{services.GroupMasters}}}
	if rules, err := modesOf(some).Rules(t.Context(), master); err != nil || len(rules.Resource) != 1 || len(rules.NonResource) != 1 {
		t.Errorf("system:masters: %+v, %v", rules, err)
	}
}

// TestFlags: a combination that cannot work is refused, with the name of the flag.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "",
		"--authorization-mode=Node,RBAC": "",
		"--authorization-mode=ABAC --authorization-policy-file=a":     "",
		"--authorization-mode=RBAC,Magic":                             `"Magic" is not a valid mode`,
		"--authorization-mode=RBAC,RBAC":                              "more than once",
		"--authorization-mode=":                                       "at least one mode",
		"--authorization-mode=ABAC":                                   "--authorization-policy-file: is required",
		"--authorization-policy-file=a":                               "cannot be used without mode ABAC",
		"--authorization-mode=Webhook":                                "--authorization-webhook-config-file: is required",
		"--authorization-webhook-config-file=a":                       "cannot be used without mode Webhook",
		"--authorization-config=a":                                    "",
		"--authorization-config=a --authorization-policy-file=b":      "",
		"--authorization-config=a --authorization-mode=RBAC":          "--authorization-config: cannot be used together with --authorization-mode",
		"--authorization-config=a --authorization-webhook-version=v1": "together with --authorization-webhook-version",
	} {
		fs := pflag.NewFlagSet("authz", pflag.ContinueOnError)
		flags(fs)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if _, err := parse(fs); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// hanging is a mode that decides nothing before the request ends, as a webhook that does not respond.
type hanging struct{ opinion }

func (hanging) Authorize(ctx context.Context, _ services.Attributes) (services.Decision, error) {
	<-ctx.Done()
	return services.Decision{}, errors.New("the webhook does not respond")
}

// TestDeadlinesOfClientsSkipNoMode: no mode allows what an earlier one could have denied, had the client not chosen a
// short timeout, or left.
func TestDeadlinesOfClientsSkipNoMode(t *testing.T) {
	c := append(chain{{"webhook", hanging{}}}, modesOf(opinion{decision: services.Decision{Allowed: true}})...)
	hurried, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, ctx := range map[string]context.Context{"in a hurry": hurried, "gone": gone} {
		if d, err := c.Authorize(ctx, services.Attributes{Verb: "get", Path: "/"}); d.Allowed || !services.IsReason(err, services.ReasonTimeout) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		results, err := c.AuthorizeBatch(ctx, []services.Attributes{{Verb: "get", Path: "/"}, {Verb: "get", Path: "/x"}})
		for _, r := range results {
			if r.Allowed || !services.IsReason(r.Err, services.ReasonTimeout) || err != nil {
				t.Errorf("%s, in a batch: %+v, %v", name, r, err)
			}
		}
	}
	if d, err := c[1:].Authorize(t.Context(), services.Attributes{Verb: "get", Path: "/"}); !d.Allowed || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
}
