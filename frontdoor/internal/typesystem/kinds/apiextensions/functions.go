// Package apiextensions holds the functions for defaults of CustomResourceDefinitions.
// Package crd validates them and sets their status. It serves "Resources and their fields"
// of the specification.
package apiextensions

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Derive: map[string]rules.DeriveFunc{
		"customItems":    customItems,
		"customNames":    customNames,
		"customStored":   customStored,
		"customVersions": customVersions,
		"customWebhook":  customWebhook,
	},
	Convert: map[string]kinds.ConvertFunc{
		"definitionFromV1beta1": definitionFromV1beta1,
		"definitionToV1beta1":   definitionToV1beta1,
	},
}
