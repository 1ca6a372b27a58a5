package table

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// specialCells are computed from the whole object of one kind.
var specialCells = map[string]func(*object) any{
	catalogue.CellPodReady:            podReady,
	catalogue.CellPodStatus:           podStatus,
	catalogue.CellPodRestarts:         podRestarts,
	catalogue.CellPodReadinessGates:   podReadinessGates,
	catalogue.CellReadyOfDesired:      readyOfDesired,
	catalogue.CellJobCompletions:      jobCompletions,
	catalogue.CellJobDuration:         jobDuration,
	catalogue.CellServiceExternalIP:   serviceExternalIP,
	catalogue.CellServicePorts:        servicePorts,
	catalogue.CellIngressClass:        ingressClass,
	catalogue.CellIngressHosts:        ingressHosts,
	catalogue.CellIngressAddress:      loadBalancerAddress,
	catalogue.CellIngressPorts:        ingressPorts,
	catalogue.CellEndpoints:           endpoints,
	catalogue.CellSlicePorts:          slicePorts,
	catalogue.CellSliceEndpoints:      sliceEndpoints,
	catalogue.CellNodeStatus:          nodeStatus,
	catalogue.CellNodeRoles:           nodeRoles,
	catalogue.CellNodeInternalIP:      nodeAddress("InternalIP"),
	catalogue.CellNodeExternalIP:      nodeAddress("ExternalIP"),
	catalogue.CellEventLastSeen:       eventLastSeen,
	catalogue.CellEventFirstSeen:      eventFirstSeen,
	catalogue.CellEventObject:         eventObject,
	catalogue.CellEventSource:         eventSource,
	catalogue.CellEventCount:          eventCount,
	catalogue.CellVolumeStatus:        volumeStatus,
	catalogue.CellVolumeClaim:         volumeClaim,
	catalogue.CellVolumeClass:         volumeClass,
	catalogue.CellStorageClassName:    storageClassName,
	catalogue.CellHPAReference:        autoscalerReference,
	catalogue.CellHPATargets:          autoscalerTargets,
	catalogue.CellQuotaRequests:       quotaRequests,
	catalogue.CellQuotaLimits:         quotaLimits,
	catalogue.CellRequestCondition:    requestCondition,
	catalogue.CellRoleReference:       roleReference,
	catalogue.CellSubjectUsers:        subjects("User"),
	catalogue.CellSubjectGroups:       subjects("Group"),
	catalogue.CellSubjectAccounts:     subjects("ServiceAccount"),
	catalogue.CellOwner:               owner,
	catalogue.CellConfigMapData:       configMapData,
	catalogue.CellTokenAudiences:      tokenAudiences,
	catalogue.CellComponentStatus:     componentStatus,
	catalogue.CellComponentMessage:    componentText("message"),
	catalogue.CellComponentError:      componentText("error"),
	catalogue.CellFlowSchemaMissing:   flowSchemaMissing,
	catalogue.CellAPIServiceBackend:   apiServiceBackend,
	catalogue.CellAPIServiceAvailable: apiServiceAvailable,
}

// rowConditions are computed for the rows of the kind that has a cell.
var rowConditions = map[string]func(*object) string{
	catalogue.CellPodStatus: podEnded,
}

func count(n int) string { return strconv.Itoa(n) }

// fraction returns n/of.
func fraction(n, of int64) string {
	return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(of, 10)
}
