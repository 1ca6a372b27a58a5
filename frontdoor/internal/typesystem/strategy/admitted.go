package strategy

import "github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"

// RestoreAfterMutation undoes what mutating admission has changed of the parts that
// only the service writes: system metadata, the status on a write of the object, and
// everything but the status on a write of the status. The object is as admission has
// returned it, before as it was given to admission, and old as it is stored; old is nil
// on create. What the kind of object decides is decided again, because admission may
// have changed what it depends on. The caller has compared the names.
func (w Write) RestoreAfterMutation(obj, before, old map[string]any) {
	meta := Metadata(obj)
	if old != nil {
		kinds.Keep(meta, Metadata(before), "resourceVersion")
		w.PrepareUpdate(obj, old)
		return
	}
	for _, field := range []string{"namespace", "name", "uid", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "resourceVersion", "generation", "selfLink"} {
		kinds.Keep(meta, Metadata(before), field)
	}
	if w.Type.Subresources["status"] != nil && !w.Type.Behavior.StatusOnCreate {
		kinds.Keep(obj, before, "status")
	}
	w.PrepareCreate(obj)
}
