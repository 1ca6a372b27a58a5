package fairness

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/portico-platform/portico/services/resource"
)

const (
	// BytesPerSeat is how much a request reads per seat, and mostSeats how many seats one may have.
	BytesPerSeat = 100_000
	mostSeats    = 10
	// partOfLevel is the part of its level's seats that one request may have: 15 percent.
	partOfLevel = 15
	// remembered is for how many collections the cost is known.
	remembered = 8192
)

// seatsFor returns the seats of a request that reads so many bytes, in a level with so many.
func seatsFor(bytes int64, nominal int) int {
	most := min(mostSeats, max(1, (nominal*partOfLevel+99)/100))
	return int(max(1, min((bytes+BytesPerSeat-1)/BytesPerSeat, int64(most))))
}

// Costs knows how large collections are, from the lists that were read last. Collections
// without a recent list count as small.
type Costs struct{ sizes *lru.Cache[collection, size] }

// collection is the objects of a type in a namespace, or in all.
type collection struct {
	resource.GroupResource
	namespace string
}

type size struct{ objects, bytes int64 }

// NewCosts returns costs that know nothing yet.
func NewCosts() *Costs {
	sizes, err := lru.New[collection, size](remembered)
	if err != nil {
		panic(err) // the number is positive
	}
	return &Costs{sizes: sizes}
}

// Measured records the objects of a whole collection that was read; an empty namespace is all.
func (c *Costs) Measured(of resource.GroupResource, namespace string, objects, bytes int64) {
	if c != nil {
		c.sizes.Add(collection{of, namespace}, size{objects, bytes})
	}
}

// Estimate returns the bytes of objects that a list of a collection reads, if it reads at most
// limit objects; 0 for any number.
func (c *Costs) Estimate(of resource.GroupResource, namespace string, limit int64) int64 {
	if c == nil {
		return 0
	}
	known, ok := c.sizes.Get(collection{of, namespace})
	if !ok || known.objects == 0 {
		return 0
	}
	if limit > 0 && limit < known.objects {
		return known.bytes / known.objects * limit
	}
	return known.bytes
}
