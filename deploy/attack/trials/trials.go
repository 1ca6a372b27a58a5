// Package trials lists the trials of package attack, and holds those that break a
// part of the suite on purpose: answers that get lost, services that hang. It decides
// what clients may be told then.
package trials

import (
	"slices"

	"github.com/portico-platform/portico/deploy/attack"
	"github.com/portico-platform/portico/deploy/attack/rights"
	"github.com/portico-platform/portico/deploy/attack/strain"
)

// All returns every trial, the disruptive ones last.
func All() []attack.Trial { return slices.Concat(rights.All(), strain.All(), faults()) }
