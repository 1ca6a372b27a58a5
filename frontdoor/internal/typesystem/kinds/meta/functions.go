// Package meta holds the functions of what all kinds have: metadata and label
// selectors. It serves "Resources and their fields" of the specification.
package meta

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are those that the files of this folder name.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"selectorOperatorValues": selectorOperatorValues,
	},
}
