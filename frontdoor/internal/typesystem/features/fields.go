// Package features holds the fields of objects that belong to features. It changes objects only by
// dropping the fields of features that are off. It serves "Stability levels" of the specification.
package features

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/release"
)

// fields lists the fields of features of release 1.21, by gate and then by kind. In a path,
// [] means all items of a list, {} all values of a map, and ? an object that is removed with its
// last field. Fields of podSpec are in pods
// and in pod templates.
var fields = map[string]map[string][]string{
	"CSIInlineVolume":           {podSpec: {"volumes[].csi"}},
	"CSIServiceAccountToken":    {"CSIDriver": {"spec.tokenRequests", "spec.requiresRepublish"}},
	"CSIStorageCapacity":        {"CSIDriver": {"spec.storageCapacity"}},
	"CSIVolumeFSGroupPolicy":    {"CSIDriver": {"spec.fsGroupPolicy"}},
	"ConfigurableFSGroupPolicy": {podSpec: {"securityContext.fsGroupChangePolicy"}},
	"DaemonSetUpdateSurge":      {"DaemonSet": {"spec.updateStrategy.rollingUpdate.maxSurge"}},
	"EndpointSliceTerminatingCondition": {"EndpointSlice": {
		"endpoints[].conditions.serving", "endpoints[].conditions.terminating"}},
	"EphemeralContainers":          {podSpec: {"ephemeralContainers"}},
	"GenericEphemeralVolume":       {podSpec: {"volumes[].ephemeral"}},
	"HPAContainerMetrics":          {"HorizontalPodAutoscaler": {"spec.metrics[].containerResource"}},
	"IndexedJob":                   {"Job": {"spec.completionMode"}},
	"IngressClassNamespacedParams": {"IngressClass": {"spec.parameters.scope", "spec.parameters.namespace"}},
	"MixedProtocolLBService":       {"Service": {"status.conditions", "status.loadBalancer.ingress[].ports"}},
	"NetworkPolicyEndPort":         {"NetworkPolicy": {"spec.ingress[].ports[].endPort", "spec.egress[].ports[].endPort"}},
	"PodAffinityNamespaceSelector": {podSpec: {
		"affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector",
		"affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector",
		"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector",
		"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector"}},
	"ProbeTerminationGracePeriod": {podSpec: {
		"containers[].livenessProbe.terminationGracePeriodSeconds", "containers[].readinessProbe.terminationGracePeriodSeconds",
		"containers[].startupProbe.terminationGracePeriodSeconds", "initContainers[].livenessProbe.terminationGracePeriodSeconds",
		"initContainers[].readinessProbe.terminationGracePeriodSeconds", "initContainers[].startupProbe.terminationGracePeriodSeconds"}},
	"ProcMountType":                {podSpec: {"containers[].securityContext.procMount", "initContainers[].securityContext.procMount"}},
	"ServiceInternalTrafficPolicy": {"Service": {"spec.internalTrafficPolicy"}},
	"ServiceLBNodePortControl":     {"Service": {"spec.allocateLoadBalancerNodePorts"}},
	"ServiceLoadBalancerClass":     {"Service": {"spec.loadBalancerClass"}},
	"ServiceTopology":              {"Service": {"spec.topologyKeys"}},
	"SetHostnameAsFQDN":            {podSpec: {"setHostnameAsFQDN"}},
	"SuspendJob":                   {"Job": {"spec.suspend"}},
	"TTLAfterFinished":             {"Job": {"spec.ttlSecondsAfterFinished"}},
	"TopologyAwareHints":           {"EndpointSlice": {"endpoints[].hints"}},
}

const podSpec = "<pod spec>"

// podSpecs maps kinds to the path of their pod spec.
var podSpecs = map[string]string{
	"Pod": "spec.", "PodTemplate": "template.spec.", "ReplicationController": "spec.template.spec.", "ReplicaSet": "spec.template.spec.",
	"Deployment": "spec.template.spec.", "StatefulSet": "spec.template.spec.", "DaemonSet": "spec.template.spec.", "Job": "spec.template.spec.",
	"CronJob": "spec.jobTemplate.spec.template.spec.",
}

// gated is a field that belongs to a feature.
type gated struct {
	gate string
	path []string // a list ends in [], a map in {}
}

// fields136 are those of release 1.36, which tools/release generates from the published
// types.
//
//go:embed 1.36.json
var fields136 []byte

// otherwise136 are the gates of release 1.36 with other fields than those that the published
// types name.
var otherwise136 = map[string]map[string][]string{
	"ContainerStopSignals": {podSpec: {"containers[].lifecycle?.stopSignal", "initContainers[].lifecycle?.stopSignal", "ephemeralContainers[].lifecycle?.stopSignal"}},
	// A claim loses the whole reference to another namespace, in core/persistentvolumeclaims.go;
	// the claims in pods keep it.
	"CrossNamespaceVolumeDataSource": {"StatefulSet": {"spec.volumeClaimTemplates[].spec.dataSourceRef.namespace"}},
	"ImageVolumeWithDigest": {"Pod": {"status.containerStatuses[].volumeMounts[].volumeStatus", "status.ephemeralContainerStatuses[].volumeMounts[].volumeStatus",
		"status.initContainerStatuses[].volumeMounts[].volumeStatus"}},
	"DynamicKubeletConfig": {"Node": {"spec.configSource", "status.config"}}, // no longer a gate, and off
}

// byKind are the fields of features by kind, for each release.
var byKind = map[string]func() map[string][]gated{
	release.V121.String(): sync.OnceValue(func() map[string][]gated { return compile(fields) }),
	release.V136.String(): sync.OnceValue(func() map[string][]gated {
		var given map[string]map[string][]string
		if err := json.Unmarshal(fields136, &given); err != nil {
			panic(err) // a test reads the file
		}
		maps.Copy(given, otherwise136)
		return compile(given)
	}),
}

// compile returns fields by kind.
func compile(fields map[string]map[string][]string) map[string][]gated {
	all := map[string][]gated{}
	for gate, kinds := range fields {
		for kind, paths := range kinds {
			for _, path := range paths {
				if kind != podSpec {
					all[kind] = append(all[kind], gated{gate, strings.Split(path, ".")})
					continue
				}
				for kind, spec := range podSpecs {
					all[kind] = append(all[kind], gated{gate, strings.Split(spec+path, ".")})
				}
			}
		}
	}
	return all
}

// Fields are the fields of features that are off, by kind.
type Fields map[string][]gated

// Off returns the fields of the features that are off.
func Off(gates featuregate.Gates) Fields {
	off := Fields{}
	for kind, fields := range byKind[gates.Release().String()]() {
		for _, f := range fields {
			if !gates.On(f.gate) {
				off[kind] = append(off[kind], f)
			}
		}
	}
	return off
}

// Drop removes the fields from an object, in place, unless the stored object has them: what was accepted
// before can still be written back. stored is nil for a new object.
func (off Fields) Drop(t *catalogue.Type, object, stored map[string]any) {
	if t.Custom {
		return
	}
	for _, f := range off[t.Kind] {
		if !visit(stored, f.path, has) {
			visit(object, f.path, remove)
		}
	}
}

// visit calls a function for the last part of a path and each object that may have it,
// until one returns true, and reports whether one did.
func visit(object map[string]any, path []string, do func(map[string]any, string) bool) bool {
	name, list := strings.CutSuffix(path[0], "[]")
	name, dictionary := strings.CutSuffix(name, "{}")
	name, optional := strings.CutSuffix(name, "?")
	switch {
	case object == nil:
		return false
	case len(path) == 1:
		return do(object, name)
	case dictionary:
		values, _ := object[name].(map[string]any)
		return slices.ContainsFunc(slices.Collect(maps.Values(values)), func(value any) bool {
			below, _ := value.(map[string]any)
			return visit(below, path[1:], do)
		})
	case !list:
		below, _ := object[name].(map[string]any)
		before := len(below)
		found := visit(below, path[1:], do)
		if optional && before > 0 && len(below) == 0 {
			delete(object, name)
		}
		return found
	}
	items, _ := object[name].([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		below, _ := item.(map[string]any)
		return visit(below, path[1:], do)
	})
}

func has(object map[string]any, name string) bool { return object[name] != nil }

func remove(object map[string]any, name string) bool {
	delete(object, name)
	return false
}
