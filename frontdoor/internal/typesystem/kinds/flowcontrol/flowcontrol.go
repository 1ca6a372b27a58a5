package flowcontrol

import (
	"fmt"
	"math"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// longestHand limits the random bits that shuffle sharding needs to deal a hand.
const longestHand = 60

// mostQueues is the largest number of queues.
const mostQueues = 10_000_000

// handFitsQueues checks that the hand is not larger than the number of queues, and not too
// large for its random bits.
func handFitsQueues(c *rules.Check, m, _ map[string]any, at *field.Path) {
	queues, hand := rules.Number(m, "queues"), rules.Number(m, "handSize")
	switch {
	case queues <= 0:
		c.Invalid(at.Field("queues"), queues, "must be positive")
	case queues > mostQueues:
		c.Invalid(at.Field("queues"), queues, "must not be greater than 10000000")
	}
	switch {
	case hand <= 0: // its own rule
		return
	case hand > queues:
		c.Invalid(at.Field("handSize"), hand, fmt.Sprintf("should not be greater than queues (%d)", queues))
		return
	}
	if bits := math.Ceil(math.Log2(float64(queues)) * float64(hand)); bits > longestHand {
		c.Invalid(at.Field("handSize"), hand, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", queues, hand, longestHand))
	}
}
