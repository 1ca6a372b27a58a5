// Package services holds the functions of Services and Endpoints. Package serviceips
// allocates addresses and ports. It serves "Resources and their fields" of the
// specification.
package services

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the files of package core refer to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"balancerAddresses":  balancerAddresses,
		"balancerModesFit":   balancerModesFit,
		"clusterAddress":     clusterAddress,
		"endpointAddress":    endpointAddress,
		"endpointSubset":     endpointSubset,
		"serviceExternalIPs": serviceExternalIPs,
		"servicePorts":       servicePorts,
		"serviceWarnings":    serviceWarnings,
		"serviceType":        serviceType,
		"sourceRanges":       sourceRanges,
	},
	Derive: map[string]rules.DeriveFunc{
		"balancerModes":       balancerModes,
		"defaultTargetPort":   defaultTargetPort,
		"noAffinityConfig":    noAffinityConfig,
		"policyOfExternalIPs": policyOfExternalIPs,
	},
	Prepare: map[string]kinds.PrepareFunc{
		"createService": createService,
		"updateService": updateService,
	},
	Cells: map[string]cell.Func{
		"showEndpoints":           showEndpoints,
		"showLoadBalancerAddress": showLoadBalancerAddress,
		"showServiceExternalIP":   showServiceExternalIP,
		"showServicePorts":        showServicePorts,
	},
}
