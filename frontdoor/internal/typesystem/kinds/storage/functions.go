// Package storage holds the functions of StorageClasses, CSI drivers and
// VolumeAttachments. It serves "Resources and their fields" of the specification.
package storage

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"allowedTopologies": allowedTopologies,
		"attachmentReport":  attachmentReport,
		"driverOfClass":     driverOfClass,
		"attachedVolume":    attachedVolume,
		"driverNode":        driverNode,
		"fixedAttachment":   fixedAttachment,
		"parameterSize":     parameterSize,
		"reclaimPolicy":     reclaimPolicy,
		"sameAttributes":    sameAttributes,
		"sameDrivers":       sameDrivers,
		"tokensInSecrets":   tokensInSecrets,
	},
	Derive: map[string]rules.DeriveFunc{
		"defaultLifecycleMode": defaultLifecycleMode,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"countDriverChange": countDriverChange,
	},
	Cells: map[string]cell.Func{
		"showStorageClassName": showStorageClassName,
		"showTokenAudiences":   showTokenAudiences,
	},
}
