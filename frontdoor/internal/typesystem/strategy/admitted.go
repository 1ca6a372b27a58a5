package strategy

import "github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"

// RestoreAfterMutation reverts the changes of mutating admission to parts that only the
// service writes: system metadata, the status in a write of the object, and everything but
// the status in a write of the status. obj is the object that admission returned, before
// the one that it received, and old the stored one; old is nil for a create. The functions
// of the kind run again, because admission may have changed their inputs. The caller must
// have called typesystem.CheckIdentity.
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
