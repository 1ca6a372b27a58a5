// Package pods holds the functions of pods and pod templates: the checks that compare
// several fields of a spec, and those of updates. It serves "Resources and their fields" of
// the specification.
package pods

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of package core refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"claimedResources":    claimedResources,
		"containerPorts":      containerPorts,
		"containerProbes":     containerProbes,
		"containerResources":  containerResources,
		"envField":            envField,
		"recursiveReadOnly":   recursiveReadOnly,
		"hostnameOverride":    hostnameOverride,
		"filesOfVolumes":      filesOfVolumes,
		"containerRestarts":   containerRestarts,
		"envSource":           envSource,
		"gatedPod":            gatedPod,
		"hostNetworkPorts":    hostNetworkPorts,
		"portsOfHost":         portsOfHost,
		"uniqueHostPorts":     uniqueHostPorts,
		"claimSource":         claimSource,
		"hostSysctls":         hostSysctls,
		"nodeValues":          nodeValues,
		"uniqueGates":         uniqueGates,
		"unmaskedProc":        unmaskedProc,
		"newPod":              newPod,
		"nodeTerm":            nodeTerm,
		"ownUsers":            ownUsers,
		"podContainers":       podContainers,
		"podDNS":              podDNS,
		"podImages":           podImages,
		"podNamespaces":       podNamespaces,
		"podOverhead":         podOverhead,
		"privilegeEscalation": privilegeEscalation,
		"resourceField":       resourceField,
		"relabelling":         relabelling,
		"resizedOnce":         resizedOnce,
		"restartRules":        restartRules,
		"spreadOnce":          spreadOnce,
		"templateContainers":  templateContainers,
		"tolerationOperator":  tolerationOperator,
		"valueOrSource":       valueOrSource,
		"volumeField":         volumeField,
		"windowsAccount":      windowsAccount,
	},
	Derive: map[string]rules.DeriveFunc{
		"defaultPullPolicy":    defaultPullPolicy,
		"hostNetworkHostPorts": hostNetworkHostPorts,
		"hostPortsOfPod":       hostPortsOfPod,
		"imagePolicyOfVolume":  imagePolicyOfVolume,
		"podAddresses":         podAddresses,
		"podRequests":          podRequests,
		"positiveGrace":        positiveGrace,
		"serviceAccountAlias":  serviceAccountAlias,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"showGates": showGates,
	},
	Grace: map[string]kinds.GraceFunc{
		"podGracePeriod": podGracePeriod,
	},
}
