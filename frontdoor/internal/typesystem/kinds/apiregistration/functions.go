// Package apiregistration holds the functions of APIServices, the registrations of
// served group versions. It serves "Resources and their fields" of the specification.
package apiregistration

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"apiServiceName":   apiServiceName,
		"apiServiceStatus": apiServiceStatus,
		"apiServiceTrust":  apiServiceTrust,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"createAPIService": createAPIService,
	},
	Cells: map[string]cell.Func{
		"showApiServiceAvailable": showApiServiceAvailable,
		"showApiServiceBackend":   showApiServiceBackend,
	},
}
