// Package core holds the functions of kinds of the core group: Nodes, Namespaces,
// ResourceQuotas, LimitRanges, ConfigMaps, Secrets, PersistentVolumes and their claims.
// Pods and Services have folders of their own. It serves "Resources and their fields" of
// the specification.
package core

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of this folder refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"soleAccessMode":      soleAccessMode,
		"attributesClass":     attributesClass,
		"dataSourceKind":      dataSourceKind,
		"declaredFeatures":    declaredFeatures,
		"expansion":           expansion,
		"dataSources":         dataSources,
		"capacityStorage":     capacityStorage,
		"certificateFitsKey":  certificateFitsKey,
		"claimChanges":        claimChanges,
		"claimStorage":        claimStorage,
		"dataSize":            dataSize,
		"claimCapacity":       claimCapacity,
		"hostRootNotRecycled": hostRootNotRecycled,
		"immutableData":       immutableData,
		"inlineVolume":        inlineVolume,
		"keysInOnePlace":      keysInOnePlace,
		"limitsOfType":        limitsOfType,
		"localVolume":         localVolume,
		"namespacedSecrets":   namespacedSecrets,
		"namespaceFinalizers": namespaceFinalizers,
		"namespacePhase":      namespacePhase,
		"nodeChanges":         nodeChanges,
		"nodeCIDRs":           nodeCIDRs,
		"nodeStatus":          nodeStatus,
		"nodeTaints":          nodeTaints,
		"quotaResources":      quotaResources,
		"quotaScopes":         quotaScopes,
		"quotaStatus":         quotaStatus,
		"scopeOperator":       scopeOperator,
		"secretKeys":          secretKeys,
		"unusedNodeFields":    unusedNodeFields,
		"volumeChanges":       volumeChanges,
	},
	Derive: map[string]rules.DeriveFunc{
		"allocatableIsCapacity": allocatableIsCapacity,
		"dataFromText":          dataFromText,
		"labelsOfTemplate":      labelsOfTemplate,
		"limitDefaults":         limitDefaults,
		"namespaceNameLabel":    namespaceNameLabel,
		"sameCIDRs":             sameCIDRs,
		"volumeModeOfVolume":    volumeModeOfVolume,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"dropDataSource":          dropDataSource,
		"sameDataSources":         sameDataSources,
		"addNamespaceFinalizer":   addNamespaceFinalizer,
		"keepNamespaceFinalizers": keepNamespaceFinalizers,
		"nameLimitRange":          nameLimitRange,
		"nameSecrets":             nameSecrets,
		"terminateNamespace":      terminateNamespace,
		"timePhase":               timePhase,
	},
	Cells: map[string]cell.Func{
		"showComponentError":   showComponentError,
		"showComponentMessage": showComponentMessage,
		"showComponentStatus":  showComponentStatus,
		"showConfigMapData":    showConfigMapData,
		"showNodeExternalIP":   showNodeExternalIP,
		"showNodeInternalIP":   showNodeInternalIP,
		"showNodeRoles":        showNodeRoles,
		"showNodeStatus":       showNodeStatus,
		"showQuotaLimits":      showQuotaLimits,
		"showQuotaRequests":    showQuotaRequests,
		"showVolumeClaim":      showVolumeClaim,
		"showClaimCapacity":    showClaimCapacity,
		"showVolumeClass":      showVolumeClass,
		"showVolumeStatus":     showVolumeStatus,
	},
}
