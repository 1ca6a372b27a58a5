// Package release names the Kubernetes releases whose API the suite can serve. The release
// of a process is chosen by --emulated-version; what is served, its defaults, its feature
// gates and /version follow from it.
package release

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a minor release of Kubernetes. The zero value counts as V121. Releases are
// comparable with ==, except for the zero value.
type Release struct{ minor int }

// The releases that can be served.
var (
	V121 = Release{21}
	V136 = Release{36}
)

// LegacyTokensCleaned is the minor version since which the uses of service account tokens in
// Secrets are recorded, and unused ones are marked as invalid and deleted.
const LegacyTokensCleaned = 29

// patches are the newest patch releases of the releases that can be served, whose
// behaviour is emulated.
var patches = map[Release]string{V121: "14", V136: "3"}

// Parse returns the release for the value of --emulated-version: 1.21 or 1.36.
func Parse(name string) (Release, error) {
	r, err := Of(name)
	if _, served := patches[r]; err != nil || !served {
		return Release{}, fmt.Errorf("unknown release %q: use %s or %s", name, V121, V136)
	}
	return r, nil
}

// Of returns any release, served or not, by its name, for example 1.25. An error is a name
// in another form.
func Of(name string) (Release, error) {
	minor, ok := strings.CutPrefix(name, "1.")
	number, err := strconv.Atoi(minor)
	if !ok || err != nil || number < 1 || strconv.Itoa(number) != minor {
		return Release{}, fmt.Errorf("%q is not a release such as %s", name, V121)
	}
	return Release{number}, nil
}

// Minor returns the second number of the release.
func (r Release) Minor() int {
	if r.minor == 0 {
		return V121.minor
	}
	return r.minor
}

// String returns the name of the release, for example 1.21.
func (r Release) String() string { return "1." + strconv.Itoa(r.Minor()) }

// Patch returns the name of the patch release that is emulated, for example 1.21.14.
func (r Release) Patch() string { return r.String() + "." + patches[Release{r.Minor()}] }

// Previous returns the release before this one.
func (r Release) Previous() Release { return Release{r.Minor() - 1} }

// Before reports whether the release is older than another one.
func (r Release) Before(other Release) bool { return r.Minor() < other.Minor() }
