package strategy

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services/tree"
)

// PrepareCreate completes a new object that is identified and has its defaults with
// what its kind asks for.
func (w Write) PrepareCreate(obj map[string]any) {
	switch w.Type.Key.String() {
	case "namespaces":
		w.createNamespace(obj)
	case "serviceaccounts":
		nameSecrets(obj)
	case "services":
		createService(obj)
	case "pods", "persistentvolumes":
		tree.Object(obj, "status")["phase"] = "Pending"
	case "persistentvolumeclaims":
		tree.Object(obj, "status")["phase"] = "Pending"
		w.dropDataSource(obj, nil)
	case "certificatesigningrequests." + w.Vocabulary.Group("certificates."):
		w.nameRequester(obj)
	case "jobs.batch":
		createJob(obj)
	case "daemonsets.apps":
		createDaemonSet(obj)
	case "apiservices." + w.Vocabulary.Group("apiregistration."):
		w.createAPIService(obj)
	case "endpointslices." + w.Vocabulary.Group("discovery."):
		if w.Type.Version == "v1" {
			dropTopology(w.Vocabulary, obj, nil)
		}
	}
	w.Settle(obj, nil)
}

// Settle decides on what nobody but the service decides on, whatever an object that
// is otherwise complete says about it: what has become of a definition. Old is nil
// at a create. Admission may have changed the object in between, so it is called
// again after that.
func (w Write) Settle(obj, old map[string]any) {
	if !w.isDefinition() {
		return
	}
	if w.Subresource == "" {
		if old == nil {
			delete(obj, "status")
		} else {
			keep(obj, old, "status")
		}
	}
	claims := crd.Claims{Others: w.CustomTypes, Types: w.Types, Vocabulary: w.Vocabulary, Now: w.Now}
	claims.Establish(obj, old)
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
	case "serviceaccounts":
		nameSecrets(obj)
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
	}
	w.Settle(obj, old)
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
	spec := tree.Object(obj, "spec")
	held, _ := spec["finalizers"].([]any)
	if name := any(w.Vocabulary.NamespaceFinalizer); !slices.Contains(held, name) {
		spec["finalizers"] = append(slices.Clone(held), name)
	}
	tree.Object(obj, "status")["phase"] = "Active"
}

// createAPIService says of a group version that is served here that it is available.
func (w Write) createAPIService(obj map[string]any) {
	if element(obj["spec"])["service"] == nil {
		obj["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "Local",
			"message": "Local APIServices are always available", "lastTransitionTime": w.Now.UTC().Format(time.RFC3339)}}}
	}
}

// nameSecrets keeps of a service account's references to secrets the names: they are
// in its namespace.
func nameSecrets(obj map[string]any) {
	secrets, _ := obj["secrets"].([]any)
	for i, item := range secrets {
		if reference, ok := item.(map[string]any); ok {
			secrets[i] = map[string]any{}
			if name, given := reference["name"]; given {
				secrets[i] = map[string]any{"name": name}
			}
		}
	}
}

// nameRequester writes into a certificate request who asks, whatever it says.
func (w Write) nameRequester(obj map[string]any) {
	spec := tree.Object(obj, "spec")
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
	status, oldStatus := tree.Object(obj, "status"), tree.Object(old, "status")
	switch w.Subresource {
	case "approval":
		keep(status, oldStatus, "certificate")
		stampConditions(status, oldStatus, w.Now)
	case "status":
		keepDecisions(status, oldStatus)
		stampConditions(status, oldStatus, w.Now)
	}
	if len(status) == 0 {
		delete(obj, "status")
	}
}

// keepDecisions keeps the conditions Approved and Denied as they are: only the
// approval subresource may set them. Where there are more or fewer of them, they stay
// as they were sent, for the schema to refuse.
func keepDecisions(status, oldStatus map[string]any) {
	conditions, _ := status["conditions"].([]any)
	old, _ := oldStatus["conditions"].([]any)
	for _, kind := range [...]string{"Approved", "Denied"} {
		now, before := indices(conditions, kind), indices(old, kind)
		if len(now) != len(before) {
			continue
		}
		for i, at := range now {
			conditions[at] = old[before[i]]
		}
	}
}

// indices tells where the conditions of a type stand.
func indices(conditions []any, kind string) []int {
	var at []int
	for i, c := range conditions {
		if element(c)["type"] == kind {
			at = append(at, i)
		}
	}
	return at
}

// stampConditions gives conditions their times. One whose status has not changed was
// reached when it was before.
func stampConditions(status, oldStatus map[string]any, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	old, _ := oldStatus["conditions"].([]any)
	type state struct{ kind, status string }
	stateOf := func(condition map[string]any) state {
		return state{text(condition["type"]), text(condition["status"])}
	}
	since := make(map[state]any, len(old))
	for _, o := range old {
		if before := element(o); before["lastTransitionTime"] != nil {
			since[stateOf(before)] = before["lastTransitionTime"]
		}
	}
	for _, c := range conditions {
		condition := element(c)
		reached := any(now.UTC().Format(time.RFC3339))
		if condition["lastUpdateTime"] == nil {
			condition["lastUpdateTime"] = reached
		}
		if before, had := since[stateOf(condition)]; had {
			reached = before
		}
		if condition["lastTransitionTime"] == nil {
			condition["lastTransitionTime"] = reached
		}
	}
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
	keep(tree.Object(obj, parent), tree.Object(old, parent), field)
	if len(tree.Object(obj, parent)) == 0 {
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
