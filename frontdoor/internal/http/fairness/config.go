package fairness

import (
	"encoding/json"
	"fmt"

	flowcontrol "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/portico-platform/portico/services"
)

const (
	// Exempt and CatchAll name the mandatory levels and flows.
	Exempt   = "exempt"
	CatchAll = "catch-all"

	catchAllShares     = 5
	lowest, everything = 10000, "*"
)

// Level is a priority level.
type Level struct {
	Name, UID string
	Exempt    bool
	// Shares is its part of the seats, in proportion to the shares of all levels. It lends up
	// to Lendable percent of its seats, and borrows up to Borrowing percent; any if that is negative.
	Shares, Lendable, Borrowing int
	// Queues is 0 for a level that refuses requests instead of queueing them. The requests of one flow
	// use Hand of the queues, each of which holds at most Length requests.
	Queues, Hand, Length int
}

// Flow is a FlowSchema.
type Flow struct {
	Name, UID, Level string
	Precedence       int32
	// By is the type of its distinguisher; "" for none.
	By    flowcontrol.FlowDistinguisherMethodType
	Rules []flowcontrol.PolicyRulesWithSubjects
}

// ParseLevel reads a stored PriorityLevelConfiguration of any version.
func ParseLevel(raw []byte) (l Level, err error) {
	var stored flowcontrol.PriorityLevelConfiguration
	var older struct {
		Spec struct {
			Limited struct {
				Shares int32 `json:"assuredConcurrencyShares"`
			} `json:"limited"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return l, err
	}
	if err := json.Unmarshal(raw, &older); err != nil {
		return l, err
	}
	l = Level{Name: stored.Name, UID: string(stored.UID), Exempt: stored.Spec.Type == flowcontrol.PriorityLevelEnablementExempt, Borrowing: -1}
	if x := stored.Spec.Exempt; x != nil {
		l.Shares, l.Lendable = number(x.NominalConcurrencyShares), number(x.LendablePercent)
	}
	if l.Exempt {
		return l, nil
	}
	limited := stored.Spec.Limited
	if limited == nil {
		return l, fmt.Errorf("priority level %s has no limits", l.Name)
	}
	l.Shares, l.Lendable = int(older.Spec.Limited.Shares), number(limited.LendablePercent)
	if limited.NominalConcurrencyShares != nil {
		l.Shares = number(limited.NominalConcurrencyShares)
	}
	if limited.BorrowingLimitPercent != nil {
		l.Borrowing = number(limited.BorrowingLimitPercent)
	}
	if q := limited.LimitResponse.Queuing; limited.LimitResponse.Type == flowcontrol.LimitResponseTypeQueue && q != nil {
		l.Queues, l.Hand, l.Length = int(q.Queues), int(q.HandSize), int(q.QueueLengthLimit)
		if _, err := shufflesharding.NewDealer(l.Queues, l.Hand); err != nil {
			return l, fmt.Errorf("priority level %s: %w", l.Name, err)
		}
	}
	return l, nil
}

func number(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// ParseFlow reads a stored FlowSchema.
func ParseFlow(raw []byte) (Flow, error) {
	var stored flowcontrol.FlowSchema
	if err := json.Unmarshal(raw, &stored); err != nil {
		return Flow{}, err
	}
	f := Flow{Name: stored.Name, UID: string(stored.UID), Level: stored.Spec.PriorityLevelConfiguration.Name,
		Precedence: stored.Spec.MatchingPrecedence, Rules: stored.Spec.Rules}
	if d := stored.Spec.DistinguisherMethod; d != nil {
		f.By = d.Type
	}
	return f, nil
}

// withMandatory adds the mandatory levels that do not exist.
func withMandatory(levels []Level) []Level {
	has := map[string]bool{}
	for _, l := range levels {
		has[l.Name] = true
	}
	if !has[Exempt] {
		levels = append(levels, Level{Name: Exempt, Exempt: true})
	}
	if !has[CatchAll] {
		levels = append(levels, Level{Name: CatchAll, Shares: catchAllShares, Borrowing: -1})
	}
	return levels
}

// mandatoryFlows are those that exist even if they are not stored.
func mandatoryFlows() []Flow {
	of := func(groups ...string) []flowcontrol.PolicyRulesWithSubjects {
		every := []string{everything}
		rule := flowcontrol.PolicyRulesWithSubjects{
			ResourceRules:    []flowcontrol.ResourcePolicyRule{{Verbs: every, APIGroups: every, Resources: every, Namespaces: every, ClusterScope: true}},
			NonResourceRules: []flowcontrol.NonResourcePolicyRule{{Verbs: every, NonResourceURLs: every}},
		}
		for _, group := range groups {
			rule.Subjects = append(rule.Subjects, flowcontrol.Subject{Kind: flowcontrol.SubjectKindGroup, Group: &flowcontrol.GroupSubject{Name: group}})
		}
		return []flowcontrol.PolicyRulesWithSubjects{rule}
	}
	return []Flow{
		{Name: Exempt, Level: Exempt, Precedence: 1, Rules: of(services.GroupMasters)},
		{Name: CatchAll, Level: CatchAll, Precedence: lowest, By: flowcontrol.FlowDistinguisherMethodByUserType, Rules: of(everything)},
	}
}
