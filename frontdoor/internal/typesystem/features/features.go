// Package features holds the feature gates of the service: the stage of each, whether it
// can be turned on and off, and the fields that belong to it. It changes objects only by
// dropping the fields of features that are off. It serves "Stability levels" and
// "Deprecation rules" of the specification.
package features

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Stage is the stage of a feature.
type Stage string

// The stages. Alpha features are off by default, the others on. GA features cannot be
// turned off.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// ServerSideApply is the gate of apply patches.
const ServerSideApply = "ServerSideApply"

// stages are the gates of release 1.21 that concern the API server and its controllers.
var stages = map[string]Stage{
	"AnyVolumeDataSource":               Alpha,
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
	"EphemeralContainers":               Alpha,
	"GenericEphemeralVolume":            Beta,
	"HPAContainerMetrics":               Alpha,
	"HPAScaleToZero":                    Alpha,
	"ImmutableEphemeralVolumes":         GA,
	"IndexedJob":                        Alpha,
	"IngressClassNamespacedParams":      Alpha,
	"MixedProtocolLBService":            Alpha,
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

// groups are the gates that set all features of a stage.
var groups = map[string]Stage{"AllAlpha": Alpha, "AllBeta": Beta}

// Gates is the set of enabled features. The zero value has the defaults.
type Gates struct{ set map[string]bool }

// Parse parses the values given for gates by name. It returns a warning for each gate that
// is deprecated. It returns an error for an unknown gate, an invalid value, or a gate that
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
			if _, one := g.set[name]; !one { // a single gate takes precedence over its stage
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
