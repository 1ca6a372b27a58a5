// Package rules holds what the overlay of package schema can only name: defaults
// that follow from other fields, and comparisons of several fields. Each is a small
// function; which object it is for, the overlay says. What every object has, its
// metadata, is here too. None of them reads another object. It serves the sections that each kind has in the
// specification, and what users of that kind expect.
package rules

import (
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Check collects what is wrong with one object.
type Check struct {
	field.Errors
	Vocabulary vocabulary.Vocabulary
}

// Comparison checks what several fields of an object, or the object and its old
// state, have to do with each other. old is nil for a create.
type Comparison func(c *Check, m, old map[string]any, at *field.Path)

// Comparisons are those that the overlay may name.
var Comparisons = map[string]Comparison{
	// every kind
	"values for the operator": operatorValues,
	// data
	"keys in one place":       keysInOnePlace,
	"at most 1 MiB of data":   dataSize,
	"immutable data":          immutableData,
	"keys of the secret type": secretKeys,
	// pods
	"changes that a pod allows":     podChanges,
	"containers of a pod":           podContainers,
	"host network ports":            hostNetworkPorts,
	"DNS of a pod":                  podDNS,
	"ports of a container":          containerPorts,
	"value or source":               valueOrSource,
	"requests within limits":        requestsWithinLimits,
	"toleration operator":           tolerationOperator,
	"privileged without escalation": escalation,
	// workloads
	"selector matches the template":         selectorMatches,
	"template restarts always":              restarts("Always"),
	"template restarts on failure or never": restarts("OnFailure", "Never"),
	"progress deadline after ready":         progressDeadline,
	"rolling update belongs to its type":    rollingUpdateType,
	"update makes progress":                 updateProgress,
	"job selector":                          jobSelectorMatches,
	"cron job name leaves room":             cronJobName,
	"minimum below maximum":                 minimumBelowMaximum,
	"priority below the system's":           systemPriority,
	// network
	"service ports":              servicePorts,
	"fields of the service type": serviceType,
	"cluster address":            clusterAddress,
	"rules or a default backend": ingressRules,
	"path of its type":           ingressPath,
	"block or selectors":         blockOrSelectors,
	// storage
	"claim asks for storage": claimStorage,
	"capacity is storage":    capacityStorage,
	// API
	"rule about resources or paths":      policyRule,
	"namespace of a service account":     subjectNamespace,
	"new event":                          newEvent,
	"event is where its object is":       eventNamespace,
	"signer of v1":                       signerOfV1,
	"certificate and conditions":         certificateStatus,
	"review version that is spoken here": reviewVersions,
}

// operatorValues: In and NotIn need values, Exists and DoesNotExist have none, Gt
// and Lt one.
func operatorValues(c *Check, m, _ map[string]any, at *field.Path) {
	n := len(listOf(m, "values"))
	switch operator := textOf(m, "operator"); {
	case (operator == "In" || operator == "NotIn") && n == 0:
		c.Required(at.Field("values"), "must be specified when `operator` is 'In' or 'NotIn'")
	case (operator == "Exists" || operator == "DoesNotExist") && n > 0:
		c.Forbidden(at.Field("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
	case (operator == "Gt" || operator == "Lt") && n != 1:
		c.Required(at.Field("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
	}
}

// maxData bounds the data of a ConfigMap or Secret, in bytes.
const maxData = 1 << 20

func keysInOnePlace(c *Check, m, _ map[string]any, at *field.Path) {
	data := objectOf(m, "data")
	for key := range objectOf(m, "binaryData") {
		if _, twice := data[key]; twice {
			c.Invalid(at.Field("data").Entry(key), key, "duplicate of key present in binaryData")
		}
	}
}

func dataSize(c *Check, m, _ map[string]any, at *field.Path) {
	size := 0
	for _, value := range objectOf(m, "data") {
		s, _ := value.(string)
		size += len(s)
	}
	for _, value := range objectOf(m, "binaryData") {
		s, _ := value.(string)
		size += len(s) / 4 * 3
	}
	if m["type"] != nil { // a secret's data are base64
		size = size / 4 * 3
	}
	if size > maxData {
		c.TooLong(at.Field("data"), maxData)
	}
}

// immutableData: once marked immutable, neither the data nor the mark change.
func immutableData(c *Check, m, old map[string]any, at *field.Path) {
	if old["immutable"] != true {
		return
	}
	for _, name := range []string{"immutable", "data", "binaryData"} {
		if !Same(m[name], old[name]) {
			c.Forbidden(at.Field(name), "field is immutable when `immutable` is set")
		}
	}
}

// secretKeys: some types of secrets must hold certain keys.
func secretKeys(c *Check, m, _ map[string]any, at *field.Path) {
	data := objectOf(m, "data")
	need := func(keys ...string) {
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				c.Required(at.Field("data").Entry(key), "")
			}
		}
	}
	switch q := c.Vocabulary.Qualified; textOf(m, "type") {
	case q("", "tls"):
		need("tls.crt", "tls.key")
	case q("", "dockercfg"):
		need(".dockercfg")
	case q("", "dockerconfigjson"):
		need(".dockerconfigjson")
	case q("", "ssh-auth"):
		need("ssh-privatekey")
	case q("", "basic-auth"):
		if data["username"] == nil && data["password"] == nil {
			need("username", "password")
		}
	case q("", "service-account-token"):
		name := q("", "service-account.name")
		if textOf(objectOf(objectOf(m, "metadata"), "annotations"), name) == "" {
			c.Required((&field.Path{Name: "metadata"}).Field("annotations").Entry(name), "")
		}
	}
}

// policyRule: a rule of a role is about resources of groups, or about paths.
func policyRule(c *Check, m, _ map[string]any, at *field.Path) {
	paths, resources, groups := listOf(m, "nonResourceURLs"), listOf(m, "resources"), listOf(m, "apiGroups")
	switch {
	case len(paths) > 0 && (len(resources) > 0 || len(groups) > 0 || len(listOf(m, "resourceNames")) > 0):
		c.Invalid(at.Field("nonResourceURLs"), paths, "rules cannot apply to both regular resources and non-resource URLs")
	case len(paths) > 0:
	case len(groups) == 0:
		c.Required(at.Field("apiGroups"), "resource rules must supply at least one api group")
	case len(resources) == 0:
		c.Required(at.Field("resources"), "resource rules must supply at least one resource")
	}
}

func subjectNamespace(c *Check, m, _ map[string]any, at *field.Path) {
	if m["kind"] == "ServiceAccount" && textOf(m, "namespace") == "" {
		c.Required(at.Field("namespace"), "")
	}
	if m["kind"] == "ServiceAccount" && textOf(m, "apiGroup") != "" {
		c.NotSupported(at.Field("apiGroup"), m["apiGroup"], "")
	}
}

// newEvent holds the rules of section "Event resource, version v1".
func newEvent(c *Check, m, old map[string]any, at *field.Path) {
	kinds := []string{"Normal", "Warning"}
	if !slices.Contains(kinds, textOf(m, "type")) && (old == nil || !Same(m["type"], old["type"])) {
		c.NotSupported(at.Field("type"), m["type"], "Normal", "Warning")
	}
	if old != nil {
		for name := range m {
			if name != "series" && name != "metadata" && !Same(m[name], old[name]) {
				c.Invalid(at.Field(name), m[name], "field is immutable")
			}
		}
		return
	}
	for _, name := range []string{"action", "reason", "reportingController", "reportingInstance", "eventTime"} {
		if Empty(m[name]) {
			c.Required(at.Field(name), "")
		}
	}
	for _, name := range []string{"deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource"} {
		if value := m[name]; !Empty(value) && value != int64(0) && len(objectOf(m, name)) == 0 == (objectOf(m, name) == nil) {
			c.Invalid(at.Field(name), value, "may not be set in a new event")
		}
	}
	eventNamespace(c, m, old, at)
}

// eventNamespace: an event stands in the namespace of the object that it is about,
// or in the default one when that has none.
func eventNamespace(c *Check, m, _ map[string]any, at *field.Path) {
	namespace := textOf(objectOf(m, "metadata"), "namespace")
	for _, name := range []string{"involvedObject", "regarding"} {
		about := objectOf(m, name)
		if about == nil {
			continue
		}
		of := textOf(about, "namespace")
		system := c.Vocabulary.Namespace("system")
		if of != namespace && !(of == "" && (namespace == "default" || namespace == system)) {
			c.Invalid(at.Field(name).Field("namespace"), of, "does not match event.namespace")
		}
	}
}
