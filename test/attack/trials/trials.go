// Package trials lists the trials of package attack, and contains those that break a part
// of the suite on purpose: lost responses, hanging services, damaged values in etcd and a hostile KMS plugin. They check
// the responses to clients in these situations.
package trials

import (
	"slices"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/rights"
	"github.com/portico-platform/portico/test/attack/strain"
)

// All returns every trial, the disruptive ones last.
func All() []attack.Trial { return slices.Concat(rights.All(), strain.All(), below(), faults()) }
