package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// counted are the resources of a quota that are counted and so are whole; compute are
// those that pods use.
var (
	counted = []string{"pods", "services", "services.nodeports", "services.loadbalancers", "replicationcontrollers", "resourcequotas",
		"secrets", "configmaps", "persistentvolumeclaims"}
	compute = []string{"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
		"requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"}
)

// quotaResources: a quota is on what is known, or on names with a domain.
func quotaResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for name, value := range rules.Object(m, "hard") {
		where, q := at.Field("hard").Entry(name), rules.Quantity(value)
		whole := slices.Contains(counted, name) || strings.HasPrefix(name, "count/")
		if !whole && !slices.Contains(compute, name) && !strings.Contains(name, "/") && !hasPages(name) {
			c.Invalid(where, name, "must be a standard resource for quota")
		}
		switch {
		case q.Sign() < 0:
			c.Invalid(where, value, "must be greater than or equal to 0")
		case whole && q.MilliValue()%1000 != 0:
			c.Invalid(where, value, "must be an integer")
		}
	}
}

func hasPages(name string) bool {
	return strings.HasPrefix(name, "hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

// quotaScopes: scopes that exclude each other leave nothing.
func quotaScopes(c *rules.Check, m, _ map[string]any, at *field.Path) {
	scopes := rules.Texts(m, "scopes")
	for _, pair := range [...][2]string{{"Terminating", "NotTerminating"}, {"BestEffort", "NotBestEffort"}} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			c.Invalid(at.Field("scopes"), scopes, "conflicting scopes")
		}
	}
	for _, scope := range scopes {
		for name := range rules.Object(m, "hard") {
			if name != "pods" && (scope == "BestEffort" || !slices.Contains(compute, name) && slices.Contains(counted, name)) {
				c.Invalid(at.Field("scopes"), scopes, "unsupported scope applied to resource")
				return
			}
		}
	}
}

// scopeOperator: only priority classes have values to choose from.
func scopeOperator(c *rules.Check, m, _ map[string]any, at *field.Path) {
	scope, operator := rules.Text(m, "scopeName"), rules.Text(m, "operator")
	if scope != "" && scope != "PriorityClass" && operator != "Exists" && operator != "" {
		c.Invalid(at.Field("operator"), operator, "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "+
			"ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity")
	}
}

// limitsOfType: the limits of a range go up from the least to the most, and only
// containers have defaults.
func limitsOfType(c *rules.Check, m, _ map[string]any, at *field.Path) {
	kind := rules.Text(m, "type")
	if kind == "Pod" {
		for _, name := range [...]string{"default", "defaultRequest"} {
			if len(rules.Object(m, name)) > 0 {
				c.Forbidden(at.Field(name), "may not be specified when `type` is 'Pod'")
			}
		}
	}
	least, most := rules.Object(m, "min"), rules.Object(m, "max")
	if kind == "PersistentVolumeClaim" && least["storage"] == nil && most["storage"] == nil {
		c.Required(at, "either minimum or maximum storage value is required, but neither was provided")
	}
	ascending := [...]string{"min", "defaultRequest", "default", "max"}
	for i, low := range ascending {
		for _, high := range ascending[i+1:] {
			below(c, m, [2]string{low, high}, at)
		}
	}
	ratios(c, m, at)
}

// below checks that no limit of the first kind is above one of the second kind.
func below(c *rules.Check, m map[string]any, kinds [2]string, at *field.Path) {
	low, high := kinds[0], kinds[1]
	upper := rules.Object(m, high)
	for name, value := range rules.Object(m, low) {
		bound, bounded := upper[name]
		if a, b := rules.Quantity(value), rules.Quantity(bound); bounded && a.Cmp(b) > 0 {
			c.Invalid(at.Field(low).Entry(name), value, low+" value "+field.Display(value)+" is greater than "+high+" value "+field.Display(bound))
		}
	}
}

// ratios: a limit is at least what is asked for, and at most what the range allows.
func ratios(c *rules.Check, m map[string]any, at *field.Path) {
	least, most := rules.Object(m, "min"), rules.Object(m, "max")
	for name, value := range rules.Object(m, "maxLimitRequestRatio") {
		where, ratio := at.Field("maxLimitRequestRatio").Entry(name), rules.Quantity(value)
		if ratio.MilliValue() < 1000 {
			c.Invalid(where, value, "ratio "+field.Display(value)+" is less than 1")
		}
		low, high := rules.Quantity(least[name]), rules.Quantity(most[name])
		if low.Sign() > 0 && high.Sign() > 0 && ratio.AsApproximateFloat64() > high.AsApproximateFloat64()/low.AsApproximateFloat64() {
			c.Invalid(where, value, "ratio "+field.Display(value)+" is greater than max/min")
		}
	}
}

// limitDefaults derives the defaults of a limit range for containers: what is not
// given is taken from the stricter neighbour.
func limitDefaults(m map[string]any, _ vocabulary.Vocabulary) {
	if m["type"] != "Container" {
		return
	}
	for _, step := range [...][2]string{{"default", "max"}, {"defaultRequest", "default"}, {"defaultRequest", "min"}} {
		if from := rules.Object(m, step[1]); len(from) > 0 {
			rules.Complete(m, map[string]any{step[0]: from})
		}
	}
}

// longestHand bounds the random bits that it takes to deal a hand.
const longestHand = 60

// queuing: a hand is dealt from the queues, and there are not too many of them.
func queuing(c *rules.Check, m, _ map[string]any, at *field.Path) {
	queues, hand := rules.Number(m, "queues"), rules.Number(m, "handSize")
	if hand > queues {
		c.Invalid(at.Field("handSize"), hand, "should not be greater than queues")
		return
	}
	if bits := math.Ceil(math.Log2(float64(queues)) * float64(hand)); bits > longestHand {
		c.Invalid(at.Field("handSize"), hand, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", queues, hand, longestHand))
	}
}

// flowResources: a rule of a flow is about namespaces, the cluster, or both.
func flowResources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "namespaces")) == 0 && m["clusterScope"] != true {
		c.Required(at.Field("namespaces"), "resource rules that are not cluster scoped must supply at least one namespace")
	}
}
