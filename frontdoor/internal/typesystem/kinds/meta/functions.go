// Package meta holds the functions of types that all kinds share: metadata and label
// selectors. It serves "Resources and their fields" of the specification.
package meta

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"selectorOperatorValues": selectorOperatorValues,
	},
}
