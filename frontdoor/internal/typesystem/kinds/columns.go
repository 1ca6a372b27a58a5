package kinds

import "strings"

// Column is one column of a type's Table.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    int32  `json:"priority,omitempty"`
	// Cell is how the value is made: a path (.spec.size) or the name of a
	// computed cell, below.
	Cell string `json:"cell"`
	// Absent is shown when the path holds nothing, as in <none>.
	Absent string `json:"absent,omitempty"`
}

// Cells that are computed, because no single path holds what people look for.
// A Column.Cell is a path (".spec.type"), one of these names, or one of those
// that take a path, followed by it ("count .data"). Package wire computes them.
const (
	// With a path.

	CellAge         = "age"                 // time since the timestamp at the path; without a path: since metadata.creationTimestamp
	CellCount       = "count"               // number of members of the list or map
	CellNames       = "names"               // the name of each member of the list, joined by commas: containers
	CellImages      = "images"              // the image of each member of the list
	CellText        = "text"                // the text as it is, empty without
	CellJoin        = "join"                // the scalars of the list, joined by commas
	CellReference   = "reference"           // kind.group/name of the reference at the path, <none> without
	CellAccessModes = "volume-access-modes" // RWO,ROX,RWX, each once
	CellLabels      = "labels"              // the map as k=v,k=v, <none> without
	CellSelector    = "selector"            // the label selector (or plain map) in its text form, <none> without
	CellBool        = "bool"                // true or false; false without
	CellYesNo       = "yes-no"              // True or False
	CellNumber      = "number"              // the number as it is, in a column of any type; 0 without

	// Of one kind.

	CellPodReady            = "pod-ready"            // 1/2 containers are ready
	CellPodStatus           = "pod-status"           // phase, or the reason that says more (Completed, CrashLoopBackOff, Init:0/1, Terminating)
	CellPodRestarts         = "pod-restarts"         // restarts of all containers
	CellPodReadinessGates   = "pod-readiness-gates"  // 1/2 gates are true
	CellReadyOfDesired      = "ready-of-desired"     // .status.readyReplicas/.spec.replicas: deployments, statefulsets
	CellJobCompletions      = "job-completions"      // 1/3, 0/1 of 3
	CellJobDuration         = "job-duration"         // from start to completion, or until now
	CellServiceExternalIP   = "service-external-ip"  // load balancer and external addresses, <pending>, <none>
	CellServicePorts        = "service-ports"        // 80:30080/TCP,443/TCP
	CellIngressClass        = "ingress-class"        // spec.ingressClassName, <none>
	CellIngressHosts        = "ingress-hosts"        // hosts of the rules, * without
	CellIngressAddress      = "ingress-address"      // addresses of the load balancer
	CellIngressPorts        = "ingress-ports"        // 80, or 80, 443 with TLS
	CellEndpoints           = "endpoints"            // ip:port of the first three, + n more...
	CellSlicePorts          = "slice-ports"          // ports of an endpoint slice, <unset>
	CellSliceEndpoints      = "slice-endpoints"      // addresses of an endpoint slice, the first three
	CellNodeStatus          = "node-status"          // Ready, NotReady, Unknown, SchedulingDisabled
	CellNodeRoles           = "node-roles"           // from the role labels, <none>
	CellNodeInternalIP      = "node-internal-ip"     // <none> without
	CellNodeExternalIP      = "node-external-ip"     // <none> without
	CellEventLastSeen       = "event-last-seen"      // age of the last occurrence
	CellEventFirstSeen      = "event-first-seen"     // age of the first occurrence
	CellEventObject         = "event-object"         // kind/name of the object, in lower case
	CellEventSource         = "event-source"         // component, host
	CellEventCount          = "event-count"          // occurrences, at least 1
	CellVolumeStatus        = "volume-status"        // phase, or Terminating
	CellVolumeClaim         = "volume-claim"         // namespace/name of the claim
	CellVolumeClass         = "volume-class"         // the class, or that of the older annotation
	CellStorageClassName    = "storageclass-name"    // the name, followed by (default) where it is
	CellHPAReference        = "autoscaler-reference" // Deployment/web
	CellHPATargets          = "autoscaler-targets"   // 10%/80%, <unknown>/80%, <none>
	CellQuotaRequests       = "quota-requests"       // resource: used/hard of all but limits
	CellQuotaLimits         = "quota-limits"         // resource: used/hard of limits
	CellRequestCondition    = "request-condition"    // Pending, Approved, Denied, with Issued or Failed
	CellRoleReference       = "role-reference"       // ClusterRole/view
	CellSubjectUsers        = "subject-users"        // names of the users bound
	CellSubjectGroups       = "subject-groups"       // names of the groups bound
	CellSubjectAccounts     = "subject-accounts"     // namespace/name of the service accounts bound
	CellOwner               = "owner"                // kind.group/name of the controller among the owners
	CellConfigMapData       = "configmap-data"       // number of keys of data and binaryData
	CellTokenAudiences      = "token-audiences"      // audiences of .spec.tokenRequests
	CellComponentStatus     = "component-status"     // Healthy, Unhealthy, Unknown
	CellComponentMessage    = "component-message"    // of the Healthy condition
	CellComponentError      = "component-error"      // of the Healthy condition
	CellFlowSchemaMissing   = "flowschema-missing"   // whether its priority level is missing: True, False, ?
	CellAPIServiceBackend   = "apiservice-backend"   // namespace/name of the service, or Local
	CellAPIServiceAvailable = "apiservice-available" // True, or False (reason)
)

// Computed splits the cell into the name and path of a computed cell; name is
// empty when the cell is a plain path.
func (c Column) Computed() (name, path string) {
	if strings.HasPrefix(c.Cell, ".") {
		return "", c.Cell
	}
	name, path, _ = strings.Cut(c.Cell, " ")
	return name, path
}
