// Package discovery holds the functions of EndpointSlices, which share rules with
// Endpoints. It serves "Resources and their fields" of the specification.
package discovery

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"namesOfEndpoints": namesOfEndpoints,
		"sliceAddresses":   sliceAddresses,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"dropTopology": dropTopology,
	},
	Cells: map[string]cell.Func{
		"showSliceEndpoints": showSliceEndpoints,
		"showSlicePorts":     showSlicePorts,
	},
	Convert: map[string]kinds.ConvertFunc{
		"endpointSliceFromV1beta1": endpointSliceFromV1beta1,
		"endpointSliceToV1beta1":   endpointSliceToV1beta1,
	},
}
