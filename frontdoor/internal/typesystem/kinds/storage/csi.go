package storage

import (
	"fmt"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultLifecycleMode defaults volumeLifecycleModes to Persistent.
func defaultLifecycleMode(m map[string]any, _ vocabulary.Vocabulary) {
	if rules.Empty(m["volumeLifecycleModes"]) {
		m["volumeLifecycleModes"] = []any{"Persistent"}
	}
}

func fixedAttachment(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && !rules.Same(m["attachRequired"], old["attachRequired"]) {
		c.Invalid(at.Field("attachedRequired"), m["attachRequired"], "field is immutable") // as Kubernetes spells it in errors
	}
}

// tokensInSecrets checks that a driver that says how it gets tokens requests some, and warns
// when tokens could get into logs.
func tokensInSecrets(c *rules.Check, m, old map[string]any, at *field.Path) {
	const name = "serviceAccountTokenInSecrets"
	requests := rules.List(m, "tokenRequests")
	switch {
	case m[name] != nil && len(requests) == 0:
		c.Invalid(at.Field(name), m[name], name+" is set but no tokenRequests are specified")
	case m[name] == nil && len(requests) > 0 && !rules.Same(m["tokenRequests"], old["tokenRequests"]):
		c.Warn("spec." + name + " is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes")
	}
}

// The limits on a driver's ID of a node, in bytes.
const (
	longestNodeID    = 256
	longestOldNodeID = 128 // of release 1.21
)

// driverNode validates a driver's ID of a node, and the topology keys. As in Kubernetes,
// errors of the keys have the path of the driver.
func driverNode(c *rules.Check, m, _ map[string]any, at *field.Path) {
	limit := longestNodeID
	if c.Release.Before(release.V136) {
		limit = longestOldNodeID
	}
	if id := rules.Text(m, "nodeID"); len(id) > limit {
		c.Invalid(at.Field("nodeID"), id, fmt.Sprintf("must be %d characters or less", limit))
	}
	seen := map[string]bool{}
	for _, key := range rules.Texts(m, "topologyKeys") {
		if key == "" {
			c.Required(at, "")
		}
		if seen[key] {
			c.Duplicate(at, key)
		}
		seen[key] = true
		for _, problem := range validation.IsQualifiedName(key) {
			c.Invalid(at, key, problem)
		}
	}
}

// countMutable is the first release in which the number of volumes of a driver may change.
var countMutable, _ = release.Of("1.35")

// sameDrivers checks that drivers are only added and removed, not changed.
func sameDrivers(c *rules.Check, m, old map[string]any, at *field.Path) {
	before := map[string]map[string]any{}
	for _, driver := range rules.Objects(old, "drivers") {
		before[rules.Text(driver, "name")] = driver
	}
	for _, driver := range rules.Objects(m, "drivers") {
		was := before[rules.Text(driver, "name")]
		if !c.Release.Before(countMutable) {
			was, driver = rules.Without(was, "allocatable"), rules.Without(driver, "allocatable")
		}
		if len(was) > 0 && !rules.Same(driver, was) {
			c.Invalid(at.Field("drivers"), driver, "field is immutable")
		}
	}
}

// sameAttributes checks that a class of attributes does not change: volumes have them.
func sameAttributes(c *rules.Check, m, old map[string]any, at *field.Path) {
	for _, name := range [...]string{"driverName", "parameters"} {
		if old != nil && !rules.Same(m[name], old[name]) {
			c.Forbidden(at.Field(name), "updates to "+name+" are forbidden.")
		}
	}
}
