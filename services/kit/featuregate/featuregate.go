// Package featuregate holds the feature gates of the suite: the stage of each, and whether it
// can be turned on and off. All services of a process share them. It serves "Stability levels" and
// "Deprecation rules" of the specification.
package featuregate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/portico-platform/portico/services/release"
)

// Stage is the stage of a feature.
type Stage string

// The stages. gates.txt has the stages of each gate by release, with its default.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
	removed    Stage = "REMOVED" // the gate no longer exists
)

// ServerSideApply is the gate of apply patches, CBOR that of the encoding, Interoperability that of requests
// that one front door forwards to another, Identity that of the Leases of front doors, and StorageVersions that
// of their entries in StorageVersions, CreateToConnect that of the verb create for commands over WebSockets,
// and ConstrainedImpersonation that of its verbs. CertificateUIDs is that of UIDs in the subjects of client
// certificates, TopologyLabels that of the topology labels of pods, and ClaimStatus that of the authorization
// to write the status of ResourceClaims. NodeAudiences restricts the audiences of tokens that nodes request,
// InsecureNodeRequests lifts the restriction of their CertificateSigningRequests.
const (
	ServerSideApply  = "ServerSideApply"
	CBOR             = "CBORServingAndStorage"
	Interoperability = "UnknownVersionInteroperabilityProxy"
	Identity         = "APIServerIdentity"
	StorageVersions  = "StorageVersionAPI"
	CreateToConnect  = "AuthorizePodWebsocketUpgradeCreatePermission"
	CertificateUIDs  = "AllowParsingUserUIDFromCertAuth"
	TopologyLabels   = "PodTopologyLabelsAdmission"
	ClaimStatus      = "DRAResourceClaimGranularStatusAuthorization"
	NodeAudiences    = "ServiceAccountNodeAudienceRestriction"

	ConstrainedImpersonation = "ConstrainedImpersonation"
	InsecureNodeRequests     = "AllowInsecureKubeletCertificateSigningRequests"
)

// groups are the gates that set all features of a stage.
var groups = map[string]Stage{"AllAlpha": Alpha, "AllBeta": Beta}

// Gates is the set of enabled features of a release. The zero value has the defaults of
// release 1.21.
type Gates struct {
	release release.Release
	set     map[string]bool
}

// Release returns the release whose features these are.
func (g Gates) Release() release.Release { return g.release }

// Parse parses the values given for the gates of a release by name. It returns a warning
// for each gate that is deprecated. It returns an error for a gate that the release does
// not have, an invalid value, or a gate that cannot be set to it.
func Parse(r release.Release, given map[string]string) (g Gates, warnings []string, err error) {
	g = Gates{release: r, set: map[string]bool{}}
	gates, err := gatesByName()
	if err != nil {
		return g, nil, err
	}
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
		switch of, known := at(gates[name], r); {
		case !known, of.stage == removed:
			return g, nil, fmt.Errorf("unrecognized feature gate: %s", name)
		case of.locked && on != of.on:
			return g, nil, fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, on, of.on)
		case of.stage == GA, of.stage == Deprecated:
			warnings = append(warnings, fmt.Sprintf("setting %s feature gate %s=%t: it will be removed in a future release", of.stage, name, on))
		}
		g.set[name] = on
	}
	for name, steps := range gates {
		of, _ := at(steps, r)
		if on, all := stage[of.stage]; all {
			if _, one := g.set[name]; !one { // a single gate takes precedence over its stage
				g.set[name] = on
			}
		}
	}
	return g, warnings, nil
}

// Refused reports whether a feature is off because its gate says so. A release that does not
// have the gate refuses nothing.
func (g Gates) Refused(name string) bool {
	gates, err := gatesByName()
	_, known := at(gates[name], g.release)
	return err == nil && known && !g.On(name)
}

// On reports whether a feature is on. Features that do not exist yet are off; those whose
// gate has been removed are on if they were GA.
func (g Gates) On(name string) bool {
	if on, ok := g.set[name]; ok {
		return on
	}
	gates, err := gatesByName()
	if err != nil {
		return false // Parse has returned the error
	}
	of, _ := at(gates[name], g.release)
	return of.on
}
