package strategy

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/custom"
)

// createKind is what single kinds do at creation.
func (w Write) createKind(obj map[string]any) {
	switch w.Type.Key.String() {
	case "namespaces":
		w.createNamespace(obj)
	case "services":
		createService(obj)
	case "pods", "persistentvolumes":
		object(obj, "status")["phase"] = "Pending"
	case "persistentvolumeclaims":
		object(obj, "status")["phase"] = "Pending"
		w.dropDataSource(obj, nil)
	case "certificatesigningrequests." + w.Vocabulary.Group("certificates."):
		w.nameRequester(obj)
	case "jobs.batch":
		createJob(obj)
	case "daemonsets.apps":
		createDaemonSet(obj)
	case "endpointslices." + w.Vocabulary.Group("discovery."):
		if w.Type.Version == "v1" {
			dropTopology(w.Vocabulary, obj, nil)
		}
	case "customresourcedefinitions." + w.Vocabulary.Group("apiextensions."):
		custom.Establish(obj, w.Customs, w.Vocabulary, w.Now)
	}
}

// updateKind is what single kinds do at an update.
func (w Write) updateKind(obj, old map[string]any) {
	switch w.Type.Key.String() {
	case "namespaces":
		if w.Subresource != "finalize" {
			keepNested(obj, old, "spec", "finalizers")
		} else {
			keep(obj, old, "status")
		}
	case "services":
		if w.Subresource == "" {
			updateService(obj, old)
		}
	case "persistentvolumeclaims":
		w.dropDataSource(obj, old)
	case "certificatesigningrequests." + w.Vocabulary.Group("certificates."):
		w.updateSigningRequest(obj, old)
	case "endpointslices." + w.Vocabulary.Group("discovery."):
		if w.Type.Version == "v1" {
			dropTopology(w.Vocabulary, obj, old)
		}
	case "customresourcedefinitions." + w.Vocabulary.Group("apiextensions."):
		if w.Subresource == "" && !Deleting(obj) {
			custom.Establish(obj, w.Customs, w.Vocabulary, w.Now)
		}
	}
}

// dropDataSource drops where a claim gets its first data from, when nobody can fill it
// from there: release 1.21 knows claims and snapshots. One that is stored stays.
func (w Write) dropDataSource(obj, old map[string]any) {
	if element(element(old)["spec"])["dataSource"] != nil {
		return
	}
	spec := element(obj["spec"])
	source := element(spec["dataSource"])
	switch group := text(source["apiGroup"]); {
	case source["kind"] == "PersistentVolumeClaim" && group == "":
	case source["kind"] == "VolumeSnapshot" && group == "snapshot."+w.Vocabulary.Group("storage."):
	default:
		delete(spec, "dataSource")
	}
}

// createNamespace holds a namespace until its contents are gone.
func (w Write) createNamespace(obj map[string]any) {
	spec := object(obj, "spec")
	held, _ := spec["finalizers"].([]any)
	if name := any(w.Vocabulary.NamespaceFinalizer); !slices.Contains(held, name) {
		spec["finalizers"] = append(slices.Clone(held), name)
	}
	object(obj, "status")["phase"] = "Active"
}

// nameRequester writes into a certificate request who asks, whatever it says.
func (w Write) nameRequester(obj map[string]any) {
	spec := object(obj, "spec")
	for _, field := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, field)
	}
	spec["username"] = w.User.Name
	if w.User.UID != "" {
		spec["uid"] = w.User.UID
	}
	if len(w.User.Groups) > 0 {
		spec["groups"] = list(w.User.Groups)
	}
	if len(w.User.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range w.User.Extra {
			extra[key] = list(values)
		}
		spec["extra"] = extra
	}
}

// updateSigningRequest keeps the half of the status that a subresource does not
// own, and gives new conditions their times.
func (w Write) updateSigningRequest(obj, old map[string]any) {
	keep(obj, old, "spec")
	status, oldStatus := object(obj, "status"), object(old, "status")
	switch w.Subresource {
	case "approval":
		keep(status, oldStatus, "certificate")
		stampConditions(status, w.Now)
	case "status":
		keepDecisions(status, oldStatus)
		stampConditions(status, w.Now)
	}
	if len(status) == 0 {
		delete(obj, "status")
	}
}

// keepDecisions keeps the conditions Approved and Denied as they are: only the
// approval subresource may set them.
func keepDecisions(status, oldStatus map[string]any) {
	decided := func(c any) bool {
		kind := element(c)["type"]
		return kind == "Approved" || kind == "Denied"
	}
	conditions, _ := status["conditions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(conditions), decided)
	old, _ := oldStatus["conditions"].([]any)
	for _, c := range old {
		if decided(c) {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 {
		status["conditions"] = kept
	} else {
		delete(status, "conditions")
	}
}

func stampConditions(status map[string]any, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition := element(c)
		for _, field := range []string{"lastUpdateTime", "lastTransitionTime"} {
			if condition[field] == nil {
				condition[field] = now.UTC().Format(time.RFC3339)
			}
		}
	}
}

// object returns the field's object, which it creates when there is none.
func object(parent map[string]any, field string) map[string]any {
	child, ok := parent[field].(map[string]any)
	if !ok {
		child = map[string]any{}
		parent[field] = child
	}
	return child
}

// element reads an element of a list as an object; an empty one when it is none.
func element(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return m
}

// keepNested is keep for a field of a field.
func keepNested(obj, old map[string]any, parent, field string) {
	keep(object(obj, parent), object(old, parent), field)
	if len(object(obj, parent)) == 0 {
		delete(obj, parent)
	}
}

func list(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
