// Package pods holds the functions of pods and of the templates that pods are made from: what goes
// together in a spec, and what may change of a pod that runs. It serves "Resources and their fields" of the specification.
package pods

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are those that the files of this folder name.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"azureDisk":           azureDisk,
		"chapSecret":          chapSecret,
		"claimMetadata":       claimMetadata,
		"containerPorts":      containerPorts,
		"containerProbes":     containerProbes,
		"containerResources":  containerResources,
		"emptyDirSizeLimit":   emptyDirSizeLimit,
		"envField":            envField,
		"envSource":           envSource,
		"fibreChannel":        fibreChannel,
		"flexOptions":         flexOptions,
		"flockerSet":          flockerSet,
		"hostNetworkPorts":    hostNetworkPorts,
		"newPod":              newPod,
		"nodeTerm":            nodeTerm,
		"podAnnotations":      podAnnotations,
		"podChanges":          podChanges,
		"podContainers":       podContainers,
		"podDNS":              podDNS,
		"podImages":           podImages,
		"podNamespaces":       podNamespaces,
		"privilegeEscalation": privilegeEscalation,
		"projectedPaths":      projectedPaths,
		"quobyteRegistry":     quobyteRegistry,
		"resourceField":       resourceField,
		"seccompProfile":      seccompProfile,
		"spreadOnce":          spreadOnce,
		"templateAnnotations": templateAnnotations,
		"templateContainers":  templateContainers,
		"tokenLifetime":       tokenLifetime,
		"tolerationOperator":  tolerationOperator,
		"valueOrSource":       valueOrSource,
		"volumeField":         volumeField,
		"volumeSecretName":    volumeSecretName,
		"windowsAccount":      windowsAccount,
	},
	Derive: map[string]rules.DeriveFunc{
		"defaultEmptyDir":      defaultEmptyDir,
		"defaultPullPolicy":    defaultPullPolicy,
		"hostNetworkHostPorts": hostNetworkHostPorts,
		"podAddresses":         podAddresses,
		"podRequests":          podRequests,
		"qualityOfService":     qualityOfService,
		"serviceAccountAlias":  serviceAccountAlias,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"keepAllButEphemeralContainers": keepAllButEphemeralContainers,
	},
	Grace: map[string]kinds.GraceFunc{
		"podGracePeriod": podGracePeriod,
	},
}
