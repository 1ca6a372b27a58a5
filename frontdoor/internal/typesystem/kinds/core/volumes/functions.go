// Package volumes holds the functions of the volumes of pods, whose definitions are in
// core/volumes.yaml. It does not check that sources exist. It serves "Resources and their
// fields" of the specification.
package volumes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of package core refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"azureDisk":         azureDisk,
		"chapSecret":        chapSecret,
		"claimMetadata":     claimMetadata,
		"emptyDirSizeLimit": emptyDirSizeLimit,
		"fibreChannel":      fibreChannel,
		"flexOptions":       flexOptions,
		"flockerSet":        flockerSet,
		"imageReference":    imageReference,
		"initiatorLength":   initiatorLength,
		"ownClaims":         ownClaims,
		"podToken":          podToken,
		"projectedPaths":    projectedPaths,
		"quobyteRegistry":   quobyteRegistry,
		"tokenLifetime":     tokenLifetime,
		"volumeSecretName":  volumeSecretName,
		"volumeWarnings":    volumeWarnings,
	},
	Derive: map[string]rules.DeriveFunc{"defaultEmptyDir": defaultEmptyDir},
}
