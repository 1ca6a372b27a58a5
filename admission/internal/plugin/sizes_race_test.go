//go:build race

package plugin

import "github.com/portico-platform/portico/services/contracttest/growth"

// sizes are smaller with the race detector, which makes comparisons about ten times slower.
func sizes() growth.Sizes { return growth.Sizes{From: 250, Most: 500} }
