package flowcontrol

import (
	"fmt"
	"math"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// longestHand limits the random bits that shuffle sharding needs to deal a hand.
const longestHand = 60

// handFitsQueues checks that the hand is not larger than the number of queues, and not too
// large for its random bits.
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

// flowSchemaScope checks that a resource rule applies to namespaces, the cluster scope or
// both.
func flowSchemaScope(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(m, "namespaces")) == 0 && m["clusterScope"] != true {
		c.Required(at.Field("namespaces"), "resource rules that are not cluster scoped must supply at least one namespace")
	}
}

// exemptPrecedence checks that no other schema precedes the one of exempt requests.
func exemptPrecedence(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Number(rules.Object(m, "spec"), "matchingPrecedence") == 1 && rules.Text(rules.Object(m, "metadata"), "name") != "exempt" {
		c.Invalid(at.Field("spec").Field("matchingPrecedence"), 1, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
}
