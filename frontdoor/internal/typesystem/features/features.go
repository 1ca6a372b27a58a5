// Package features knows the feature gates of the service: how far each has come, what
// can be turned on and off, and which fields go with it. It changes no object but by
// dropping the fields of features that are off. It serves "Stability levels" and
// "Deprecation rules" of the specification.
package features

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Stage is how far a feature has come.
type Stage string

// The stages. Alpha features are off by default, the others on. Those that are GA can not be
// turned off any more.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// ServerSideApply is the gate of apply patches.
const ServerSideApply = "ServerSideApply"

// stages are all gates of release 1.21 that are about the API and what stands behind it.
var stages = map[string]Stage{
	"AdvancedAuditing":                  GA,
	"CSIInlineVolume":                   Beta,
	"CSIServiceAccountToken":            Beta,
	"CSIStorageCapacity":                Beta,
	"CSIVolumeFSGroupPolicy":            Beta,
	"ConfigurableFSGroupPolicy":         Beta,
	"DaemonSetUpdateSurge":              Alpha,
	"DryRun":                            GA,
	"EndpointSlice":                     GA,
	"EndpointSliceNodeName":             GA,
	"EndpointSliceTerminatingCondition": Alpha,
	"GenericEphemeralVolume":            Beta,
	"ImmutableEphemeralVolumes":         GA,
	"IndexedJob":                        Alpha,
	"IngressClassNamespacedParams":      Alpha,
	"NetworkPolicyEndPort":              Alpha,
	"NodeLease":                         GA,
	"PodAffinityNamespaceSelector":      Alpha,
	"PodDisruptionBudget":               GA,
	"ProbeTerminationGracePeriod":       Alpha,
	"ProcMountType":                     Alpha,
	"RootCAConfigMap":                   GA,
	"RunAsGroup":                        GA,
	"RuntimeClass":                      GA,
	"SCTPSupport":                       GA,
	"SelectorIndex":                     GA,
	ServerSideApply:                     Beta,
	"ServiceAccountIssuerDiscovery":     GA,
	"ServiceAppProtocol":                GA,
	"ServiceInternalTrafficPolicy":      Alpha,
	"ServiceLBNodePortControl":          Alpha,
	"ServiceLoadBalancerClass":          Alpha,
	"ServiceTopology":                   Alpha,
	"SetHostnameAsFQDN":                 Beta,
	"StartupProbe":                      GA,
	"StorageObjectInUseProtection":      GA,
	"StreamingProxyRedirects":           Deprecated,
	"SuspendJob":                        Alpha,
	"Sysctls":                           GA,
	"TTLAfterFinished":                  Beta,
	"TopologyAwareHints":                Alpha,
	"VolumeSnapshotDataSource":          GA,
	"VolumeSubpath":                     GA,
	"WatchBookmark":                     GA,
}

// groups are the gates that stand for all of a stage.
var groups = map[string]Stage{"AllAlpha": Alpha, "AllBeta": Beta}

// Gates say which features are on. The zero value has the defaults.
type Gates struct{ set map[string]bool }

// Parse reads what is given for gates, by their names. The warnings are about gates that
// will go. An error names a gate that there is not, a value that is none, or a gate that
// cannot be turned off.
func Parse(given map[string]string) (g Gates, warnings []string, err error) {
	g.set = map[string]bool{}
	stage := map[Stage]bool{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		on, err := strconv.ParseBool(given[name])
		if err != nil {
			return g, nil, fmt.Errorf("invalid value of %s: %q: must be true or false", name, given[name])
		}
		if of, ok := groups[name]; ok {
			stage[of] = on
			continue
		}
		switch of, known := stages[name]; {
		case !known:
			return g, nil, fmt.Errorf("unrecognized feature gate: %s", name)
		case of == GA && !on:
			return g, nil, fmt.Errorf("cannot set feature gate %s to false, feature is locked to true", name)
		case of == GA, of == Deprecated:
			warnings = append(warnings, fmt.Sprintf("setting %s feature gate %s=%t: it will be removed in a future release", of, name, on))
		}
		g.set[name] = on
	}
	for name, of := range stages {
		if on, all := stage[of]; all {
			if _, one := g.set[name]; !one { // a gate itself is nearer than its stage
				g.set[name] = on
			}
		}
	}
	return g, warnings, nil
}

// On reports whether a feature is on.
func (g Gates) On(name string) bool {
	if on, ok := g.set[name]; ok {
		return on
	}
	return stages[name] != Alpha
}
