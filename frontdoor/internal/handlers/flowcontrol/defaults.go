package flowcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Default is an object that is restored.
type Default struct {
	Object map[string]any // in a served version
	// Mandatory objects have always this spec. Others are created at the first start, and with
	// AutoUpdate they are created again and updated until a client changes them.
	Mandatory bool
	// AutoUpdate is the annotation by which an object is updated, or is not; "" for none.
	AutoUpdate string
}

// wanted is a Default in a form that can be compared with the stored object.
type wanted struct {
	Default
	kind, name string
	spec       any // a Level or a Flow
}

func (d Default) parse() (wanted, error) {
	w := wanted{Default: d, kind: tree.Text(d.Object, "kind"), name: tree.Text(d.Object, "metadata", "name")}
	raw, err := json.Marshal(d.Object)
	if err != nil {
		return w, err
	}
	if w.kind == flowKind {
		w.spec, err = fairness.ParseFlow(raw)
	} else {
		w.spec, err = fairness.ParseLevel(raw)
	}
	if err != nil {
		return w, fmt.Errorf("%s %s: %w", w.kind, w.name, err)
	}
	return w, nil
}

// find returns the stored object: whether it exists, its metadata, and whether it has the spec of the default.
func (k *Keeper) find(w wanted) (m meta, same, exists bool) {
	if w.kind == flowKind {
		f, ok := k.flows.Get("", w.name)
		f.spec.UID = ""
		return f.meta, reflect.DeepEqual(any(f.spec), w.spec), ok
	}
	l, ok := k.levels.Get("", w.name)
	l.spec.UID = ""
	return l.meta, any(l.spec) == w.spec, ok
}

// restore creates a default that is missing, or gives it its spec and annotation again.
func (k *Keeper) restore(ctx context.Context, w wanted) error {
	m, same, exists := k.find(w)
	if key := (resource.Key{GroupResource: typeOf(k.Vocabulary, w.kind), Name: w.name}); k.levels.Now().Err(key) != nil || k.flows.Now().Err(key) != nil {
		return nil // it is not missing: an administrator decides
	}
	if !exists {
		return k.create(ctx, w)
	}
	updates := w.Mandatory || w.AutoUpdate != "" && m.updates(w.AutoUpdate)
	text := strconv.FormatBool(updates)
	noted := w.AutoUpdate == "" || m.Metadata.Annotations[w.AutoUpdate] == text
	if (same || !updates) && noted {
		return nil
	}
	err := k.amend(ctx, typeOf(k.Vocabulary, w.kind), w.name, func(a amend.Amendment, object map[string]any) error {
		before := typesystem.Copy(object)
		metadata := maps.Clone(tree.Child(object, "metadata"))
		if updates && !same {
			object["spec"] = tree.Copy(w.Object["spec"])
			metadata["generation"] = tree.Number(object, "metadata", "generation") + 1
		}
		if !noted {
			annotations := map[string]any{}
			maps.Copy(annotations, tree.Child(metadata, "annotations"))
			annotations[w.AutoUpdate] = text
			metadata["annotations"] = annotations
		}
		object["metadata"] = metadata
		return a.Engine.Merge.Track(fieldmanager.Change{Type: a.Type, Live: before, New: object, Manager: Producer})
	})
	if err == nil {
		k.Log.Info("restored a default FlowSchema or PriorityLevelConfiguration", "kind", w.kind, "name", w.name)
	}
	return err
}

// create creates a default. Suggested ones that a client has deleted come back only with AutoUpdate.
func (k *Keeper) create(ctx context.Context, w wanted) error {
	if !w.Mandatory && w.AutoUpdate == "" {
		return nil
	}
	e := k.Engine()
	t, ok := e.Types.ByAPIVersion(tree.Text(w.Object, "apiVersion"), w.kind)
	if !ok {
		return nil // disabled by --runtime-config
	}
	err := k.Writes.CreateAs(ctx, Producer, e, t, tree.Copy(w.Object).(map[string]any))
	if services.IsReason(err, services.ReasonAlreadyExists) {
		return nil
	}
	return err
}

// updates reports whether the spec of a suggested object follows its default: if the annotation says
// so or, without it, no client has changed the spec.
func (m meta) updates(annotation string) bool {
	if updates, err := strconv.ParseBool(m.Metadata.Annotations[annotation]); err == nil {
		return updates
	}
	return m.Metadata.Generation == 1
}
