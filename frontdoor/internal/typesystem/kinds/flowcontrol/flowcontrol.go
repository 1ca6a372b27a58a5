package flowcontrol

import (
	"fmt"
	"math"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// longestHand bounds the random bits that it takes to deal a hand.
const longestHand = 60

// handFitsQueues: a hand is dealt from the queues, and there are not too many of them.
func handFitsQueues(c *rules.Check, m, _ map[string]any, at *field.Path) {
	queues, hand := rules.Number(m, "queues"), rules.Number(m, "handSize")
	if hand > queues {
		c.Invalid(at.Field("handSize"), hand, "should not be greater than queues")
		return
	}
	if bits := math.Ceil(math.Log2(float64(queues)) * float64(hand)); bits > longestHand {
		c.Invalid(at.Field("handSize"), hand, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", queues, hand, longestHand))
	}
}

// flowSchemaScope: a rule of a flow is about namespaces, the cluster, or both.
func flowSchemaScope(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "namespaces")) == 0 && m["clusterScope"] != true {
		c.Required(at.Field("namespaces"), "resource rules that are not cluster scoped must supply at least one namespace")
	}
}
