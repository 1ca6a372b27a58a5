package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

func showVolumeStatus(o *cell.Object) any {
	if o.Metadata.Get("deletionTimestamp").Exists() {
		return "Terminating"
	}
	return o.Status.Get("phase").String()
}

func showVolumeClaim(o *cell.Object) any {
	claim := o.Spec.Get("claimRef")
	if !claim.Exists() {
		return ""
	}
	return claim.Get("namespace").String() + "/" + claim.Get("name").String()
}

// showClaimCapacity is what the volume of a claim holds, "0" if that is not known.
func showClaimCapacity(o *cell.Object) any {
	if o.Spec.Get("volumeName").String() == "" {
		return ""
	}
	return cmp.Or(o.Status.Get("capacity", "storage").Text(), "0")
}

func showVolumeClass(o *cell.Object) any {
	older := o.Metadata.Get("annotations", o.Names.Qualified("volume.beta", "storage-class")).String()
	return cmp.Or(older, o.Spec.Get("storageClassName").String())
}

func showQuotaRequests(o *cell.Object) any {
	return quota(o, func(name string) bool { return !strings.HasPrefix(name, "limits") })
}

func showQuotaLimits(o *cell.Object) any {
	return quota(o, func(name string) bool { return strings.HasPrefix(name, "limits") })
}

func quota(o *cell.Object, include func(string) bool) string {
	var lines []string
	for name, hard := range o.Status.Get("hard").Members() {
		if include(name) {
			lines = append(lines, name+": "+cmp.Or(o.Status.Get("used", name).Text(), "0")+"/"+hard.Text())
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func showConfigMapData(o *cell.Object) any {
	return int64(o.Get("data").Len() + o.Get("binaryData").Len())
}

// healthy returns the condition Healthy of a ComponentStatus, whose conditions are at the
// top level.
func healthy(o *cell.Object) rawjson.Value { return cell.Condition(o.Get("conditions"), "Healthy") }

func showComponentStatus(o *cell.Object) any {
	switch healthy(o).Get("status").String() {
	case "True":
		return "Healthy"
	case "False":
		return "Unhealthy"
	}
	return "Unknown"
}

func componentText(o *cell.Object, member string) any {
	return healthy(o).Get(member).String()
}

func showNodeStatus(o *cell.Object) any {
	text := "Unknown"
	if ready := cell.Condition(o.Status.Get("conditions"), "Ready").Get("status"); ready.Is("True") {
		text = "Ready"
	} else if ready.Exists() {
		text = "NotReady"
	}
	if o.Spec.Get("unschedulable").True() {
		text += ",SchedulingDisabled"
	}
	return text
}

// showNodeRoles reads both forms of role labels: <role prefix>/<role> and <domain>/role:
// <role>.
func showNodeRoles(o *cell.Object) any {
	prefix, single := o.Names.Qualified("node-role", ""), o.Names.Qualified("", "role")
	var roles []string
	for label, value := range o.Metadata.Get("labels").Members() {
		if role, ok := cutNonEmpty(label, prefix); ok {
			roles = append(roles, role)
		} else if label == single && value.String() != "" {
			roles = append(roles, value.String())
		}
	}
	slices.Sort(roles)
	return cell.OrNone(slices.Compact(roles))
}

func nodeAddress(o *cell.Object, kind string) any {
	for a := range o.Status.Get("addresses").Items() {
		if a.Get("type").Is(kind) {
			return a.Get("address").String()
		}
	}
	return cell.None

}

func cutNonEmpty(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	return rest, ok && rest != ""
}

// showNodeInternalIP shows the address inside the cluster.
func showNodeInternalIP(o *cell.Object) any { return nodeAddress(o, "InternalIP") }

// showNodeExternalIP shows the address that others use.
func showNodeExternalIP(o *cell.Object) any { return nodeAddress(o, "ExternalIP") }

// showComponentMessage shows the message of the condition Healthy.
func showComponentMessage(o *cell.Object) any { return componentText(o, "message") }

// showComponentError shows the error of the condition Healthy.
func showComponentError(o *cell.Object) any { return componentText(o, "error") }
