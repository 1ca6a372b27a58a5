package table

import (
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// specialCells are computed from the whole object of one kind.
var specialCells = map[string]func(*object) any{
	kinds.CellPodReady:            podReady,
	kinds.CellPodStatus:           podStatus,
	kinds.CellPodRestarts:         podRestarts,
	kinds.CellPodReadinessGates:   podReadinessGates,
	kinds.CellReadyOfDesired:      readyOfDesired,
	kinds.CellJobCompletions:      jobCompletions,
	kinds.CellJobDuration:         jobDuration,
	kinds.CellServiceExternalIP:   serviceExternalIP,
	kinds.CellServicePorts:        servicePorts,
	kinds.CellIngressClass:        ingressClass,
	kinds.CellIngressHosts:        ingressHosts,
	kinds.CellIngressAddress:      loadBalancerAddress,
	kinds.CellIngressPorts:        ingressPorts,
	kinds.CellEndpoints:           endpoints,
	kinds.CellSlicePorts:          slicePorts,
	kinds.CellSliceEndpoints:      sliceEndpoints,
	kinds.CellNodeStatus:          nodeStatus,
	kinds.CellNodeRoles:           nodeRoles,
	kinds.CellNodeInternalIP:      nodeAddress("InternalIP"),
	kinds.CellNodeExternalIP:      nodeAddress("ExternalIP"),
	kinds.CellEventLastSeen:       eventLastSeen,
	kinds.CellEventFirstSeen:      eventFirstSeen,
	kinds.CellEventObject:         eventObject,
	kinds.CellEventSource:         eventSource,
	kinds.CellEventCount:          eventCount,
	kinds.CellVolumeStatus:        volumeStatus,
	kinds.CellVolumeClaim:         volumeClaim,
	kinds.CellVolumeClass:         volumeClass,
	kinds.CellStorageClassName:    storageClassName,
	kinds.CellHPAReference:        autoscalerReference,
	kinds.CellHPATargets:          autoscalerTargets,
	kinds.CellQuotaRequests:       quotaRequests,
	kinds.CellQuotaLimits:         quotaLimits,
	kinds.CellRequestCondition:    requestCondition,
	kinds.CellRoleReference:       roleReference,
	kinds.CellSubjectUsers:        subjects("User"),
	kinds.CellSubjectGroups:       subjects("Group"),
	kinds.CellSubjectAccounts:     subjects("ServiceAccount"),
	kinds.CellOwner:               owner,
	kinds.CellConfigMapData:       configMapData,
	kinds.CellTokenAudiences:      tokenAudiences,
	kinds.CellComponentStatus:     componentStatus,
	kinds.CellComponentMessage:    componentText("message"),
	kinds.CellComponentError:      componentText("error"),
	kinds.CellFlowSchemaMissing:   flowSchemaMissing,
	kinds.CellAPIServiceBackend:   apiServiceBackend,
	kinds.CellAPIServiceAvailable: apiServiceAvailable,
}

// rowConditions are computed for the rows of the kind that has a cell.
var rowConditions = map[string]func(*object) string{
	kinds.CellPodStatus: podEnded,
}

func count(n int) string { return strconv.Itoa(n) }

// fraction returns n/of.
func fraction(n, of int64) string {
	return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(of, 10)
}
