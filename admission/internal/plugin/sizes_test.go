//go:build !race

package plugin

import "github.com/portico-platform/portico/services/contracttest/growth"

// sizes are those at which quadratic work shows.
func sizes() growth.Sizes { return growth.Sizes{From: 1500, Most: 3000} }
