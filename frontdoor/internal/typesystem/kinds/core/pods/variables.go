package pods

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/resources"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"k8s.io/apimachinery/pkg/util/validation"
)

// envFiles is the first release in which variables may come from files of volumes.
var envFiles, _ = release.Of("1.35")

// sources are the fields of valueFrom.
var sources = [...]string{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}

// valueOrSource checks that a variable with valueFrom has exactly one source and no value.
func valueOrSource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	from := rules.Object(m, "valueFrom")
	if from == nil {
		return
	}
	given := 0
	for _, name := range sources {
		if from[name] != nil {
			given++
		}
	}
	at = at.Field("valueFrom")
	switch valued := rules.Text(m, "value") != ""; {
	case given == 0:
		listed := "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
		if !c.Release.Before(envFiles) {
			listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
		}
		c.Invalid(at, "", "must specify one of: "+listed)
	case valued:
		c.Invalid(at, "", "may not be specified when `value` is not empty")
	case given > 1:
		c.Invalid(at, "", "may not have more than one field specified at a time")
	}
}

// envSource checks that an item of envFrom has exactly one source. As in Kubernetes, errors
// have the path of the list.
func envSource(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch first, second := m["configMapRef"] != nil, m["secretRef"] != nil; {
	case !first && !second:
		c.Invalid(at.Parent, "", "must specify one of: `configMapRef` or `secretRef`")
	case first && second:
		c.Invalid(at.Parent, "", "may not have more than one field specified at a time")
	}
}

// hostIPs is the first release whose pods have all addresses of their host.
var hostIPs, _ = release.Of("1.29")

// Fields of a pod that fieldRef supports for variables and for files, and all fields that
// it can parse.
var (
	ofVariables = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.podIP", "status.podIPs"}
	ofFiles = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	ofPods  = slices.Concat(ofVariables, ofFiles, []string{"spec.restartPolicy", "spec.schedulerName", "status.phase"})
)

func envField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	allowed := ofVariables
	if !c.Release.Before(hostIPs) {
		allowed = slices.Insert(slices.Clone(allowed), slices.Index(allowed, "status.hostIP")+1, "status.hostIPs")
	}
	podField(c, rules.Object(m, "fieldRef"), allowed, at.Field("fieldRef"))
}

// volumeField validates the source of a file in a downward API volume. at is the path of
// the file; as in Kubernetes, errors have a path below the volume.
func volumeField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	at = at.Parent.Parent
	fieldOfPod, amount := rules.Object(m, "fieldRef"), rules.Object(m, "resourceFieldRef")
	podField(c, fieldOfPod, ofFiles, at.Field("fieldRef"))
	switch {
	case fieldOfPod == nil && amount == nil:
		c.Required(at, "one of fieldRef and resourceFieldRef is required")
	case fieldOfPod != nil && amount != nil:
		c.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
	case amount != nil && rules.Text(amount, "containerName") == "":
		c.Required(at.Field("resourceFieldRef").Field("containerName"), "")
	}
}

// podField validates a reference to a field of the pod, or to a single label or annotation.
func podField(c *rules.Check, reference map[string]any, allowed []string, at *field.Path) {
	path := rules.Text(reference, "fieldPath")
	if path == "" {
		return // required, and reported as such
	}
	unknown := func(why string) { c.Invalid(at.Field("fieldPath"), path, "error converting fieldPath: "+why) }
	if version := rules.Text(reference, "apiVersion"); version != "v1" {
		unknown("unsupported pod version: " + version)
		return
	}
	if single, subscripted := strings.CutSuffix(path, "']"); subscripted && strings.Contains(single, "['") {
		name, key, _ := strings.Cut(single, "['")
		switch name {
		case "metadata.annotations":
			key = strings.ToLower(key)
		case "metadata.labels":
		default:
			unknown("field label does not support subscript: " + path)
			return
		}
		for _, problem := range validation.IsQualifiedName(key) {
			c.Invalid(at, key, problem)
		}
		return
	}
	if path == "spec.host" {
		path = "spec.nodeName" // spec.host is the former name
	}
	switch {
	case !slices.Contains(ofPods, path) && !slices.Contains(allowed, path):
		unknown("field label not supported: " + path)
	case !slices.Contains(allowed, path):
		c.NotSupported(at.Field("fieldPath"), path, allowed...)
	}
}

// divisors are the valid divisors of resourceFieldRef.
var divisors = struct{ cpu, bytes []string }{
	cpu:   []string{"1m", "1"},
	bytes: []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"},
}

// resourceField validates a resourceFieldRef.
func resourceField(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name := rules.Text(m, "resource")
	side, resource, _ := strings.Cut(name, ".")
	known := (side == "limits" || side == "requests") && (resources.Native[resource] || strings.HasPrefix(resource, resources.HugePages))
	inVolume := at.Parent.Name != "valueFrom"
	if name == "" || inVolume && rules.Text(m, "containerName") == "" {
		return
	}
	if !known {
		c.NotSupported(at.Field("resource"), name, "limits.cpu", "limits.ephemeral-storage", "limits.memory",
			"requests.cpu", "requests.ephemeral-storage", "requests.memory")
		return
	}
	units, called := divisors.bytes, resource
	switch {
	case resource == "cpu":
		units = divisors.cpu
	case resource == "ephemeral-storage":
		called = "local ephemeral storage"
	case strings.HasPrefix(resource, resources.HugePages):
		called = "hugepages"
	}
	if divisor := rules.Text(m, "divisor"); divisor != "" && divisor != "0" && !slices.Contains(units, divisor) {
		listed := strings.Join(units, ", ")
		if resource == "cpu" {
			listed = strings.Join(units, " and ")
		}
		c.Invalid(at.Field("divisor"), name, "only divisor's values "+listed+" are supported with the "+called+" resource")
	}
}
