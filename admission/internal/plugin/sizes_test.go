//go:build !race

package plugin

import "github.com/portico-platform/portico/services/contracttest/growth"

// sizes are large enough to detect quadratic time.
func sizes() growth.Sizes { return growth.Sizes{From: 1500, Most: 3000} }
