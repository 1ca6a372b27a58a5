package autoscaling

import (
	"encoding/json"
	"reflect"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// notes are annotations of an autoscaler that hold, as JSON, what the version that
// it is in has no room for.
type notes map[string]string

// The original's notes. Metrics, statuses and conditions are those of v2beta1.
const (
	notedMetrics    = "metrics"
	notedStatuses   = "current-metrics"
	notedConditions = "conditions"
	notedBehavior   = "behavior"
)

// Our own notes: metrics as v2beta2 had them, when the way there and back would
// change them, for example their order. They count as long as they still say the
// same as the object.
const (
	originalMetrics  = "original-metrics"
	originalStatuses = "original-current-metrics"
)

var allNotes = [...]string{notedMetrics, notedStatuses, notedConditions, notedBehavior, originalMetrics, originalStatuses}

// annotationOf returns the name of the annotation that holds a note.
func annotationOf(v vocabulary.Vocabulary, note string) string {
	return v.Qualified("autoscaling.alpha", note)
}

// takeNotes removes the notes of an object and returns them.
func takeNotes(v vocabulary.Vocabulary, object map[string]any) notes {
	n := notes{}
	for _, name := range allNotes {
		if text, ok := edit.TakeAnnotation(object, annotationOf(v, name)); ok {
			n[name] = text
		}
	}
	return n
}

// write writes the notes to an object.
func (n notes) write(v vocabulary.Vocabulary, object map[string]any) {
	for name, text := range n {
		edit.Annotate(object, annotationOf(v, name), text)
	}
}

// encode makes a note of a value, unless it is an empty list.
func (n notes) encode(name string, value any) {
	if list, ok := value.([]any); ok && len(list) == 0 {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		n[name] = string(text)
	}
}

// keep notes metrics that the way there and back would change.
func (n notes) keep(name string, metrics []any, through func([]any) []any) {
	if len(metrics) > 0 && !reflect.DeepEqual(through(metrics), metrics) {
		n.encode(name, metrics)
	}
}

// recall returns the original metrics, if they are what the others stem from.
func recall(metrics, original []any, through func([]any) []any) []any {
	if len(original) > 0 && reflect.DeepEqual(through(original), metrics) {
		return original
	}
	return metrics
}

// decoded returns the list in a note, empty when there is none or it is not one.
// Anybody may write annotations: what comes out of one is of the type.
func decoded[T any](note string) []any {
	list, _ := decodedAny[T](note).([]any)
	if list == nil {
		return []any{}
	}
	return list
}

func decodedAny[T any](note string) any {
	var typed T
	var plain any
	if note == "" || json.Unmarshal([]byte(note), &typed) != nil {
		return nil
	}
	text, err := json.Marshal(typed)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(text, &plain) != nil {
		return nil
	}
	return withoutNulls(plain)
}

// withoutNulls removes members that are null, in place.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if member == nil {
				delete(value, name)
			}
			withoutNulls(member)
		}
	case []any:
		for _, item := range value {
			withoutNulls(item)
		}
	}
	return value
}
