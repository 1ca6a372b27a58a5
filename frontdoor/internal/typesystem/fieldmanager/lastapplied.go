package fieldmanager

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/services/tree"
)

// kubectl is the manager of client-side apply, which keeps the last configuration in an
// annotation. Its objects migrate to server-side apply without conflicts with itself.
const kubectl = "kubectl"

func (e *Engine) lastAppliedName() string {
	return e.Vocabulary.Qualified("kubectl", "last-applied-configuration")
}

// withoutLastApplied removes the conflicts on fields that, according to the annotation,
// kubectl itself has set and that still have that value.
func (e *Engine) withoutLastApplied(r PatchRequest, live *typed.TypedValue, conflicts smd.Conflicts) smd.Conflicts {
	if r.Manager != kubectl {
		return conflicts
	}
	mine := e.lastApplied(r, live)
	if mine == nil {
		return conflicts
	}
	var left smd.Conflicts
	for _, c := range conflicts {
		if !mine.Has(c.Path) {
			left = append(left, c)
		}
	}
	return left
}

// lastApplied returns the fields of the annotation that are unchanged in the live object;
// nil when there is no usable annotation.
func (e *Engine) lastApplied(r PatchRequest, live *typed.TypedValue) *fieldpath.Set {
	annotation := tree.Text(annotationsOf(r.Current), e.lastAppliedName())
	if annotation == "" {
		return nil
	}
	config, err := tree.Decode([]byte(annotation))
	if err != nil || tree.Text(config, "apiVersion") != r.Type.APIVersion() {
		return nil
	}
	last, err := e.Typed(config)
	if err != nil {
		return nil
	}
	set, err := last.ToFieldSet()
	if err != nil {
		return nil
	}
	difference, err := last.Compare(live)
	if err != nil {
		return nil
	}
	return set.Difference(difference.Modified).Difference(difference.Added).Difference(difference.Removed)
}

// syncLastApplied updates the annotation of an object that has one, so that kubectl can
// return to client-side apply.
func (e *Engine) syncLastApplied(r PatchRequest, object, config map[string]any) {
	name, annotations := e.lastAppliedName(), annotationsOf(object)
	if r.Manager != kubectl || tree.Text(annotations, name) == "" {
		return
	}
	bare := copyOf(config)
	delete(annotationsOf(bare), name)
	encoded, err := json.Marshal(bare)
	if err != nil {
		return
	}
	annotations[name] = string(encoded) + "\n"
	if bytesOf(annotations) > validation.TotalAnnotationSizeLimitB {
		delete(annotations, name) // else the object would be invalid
	}
}

func bytesOf(annotations map[string]any) (sum int) {
	for name, value := range annotations {
		text, _ := value.(string)
		sum += len(name) + len(text)
	}
	return sum
}

func annotationsOf(object map[string]any) map[string]any {
	return tree.Child(object, "metadata", "annotations")
}
