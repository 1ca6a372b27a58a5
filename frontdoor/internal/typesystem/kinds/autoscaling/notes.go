package autoscaling

import (
	"encoding/json"
	"reflect"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// notes are annotations of an autoscaler whose values are JSON: what its version has no
// fields for.
type notes map[string]string

// The notes of Kubernetes. Metrics, statuses and conditions are in the form of v2beta1.
const (
	notedMetrics    = "metrics"
	notedStatuses   = "current-metrics"
	notedConditions = "conditions"
	notedBehavior   = "behavior"
)

// Additional notes of this service: metrics in the form of v2beta2, if the round trip would
// change them, for example their order. They are ignored if they no longer match the
// object.
const (
	originalMetrics  = "original-metrics"
	originalStatuses = "original-current-metrics"
)

var allNotes = [...]string{notedMetrics, notedStatuses, notedConditions, notedBehavior, originalMetrics, originalStatuses}

// annotationOf returns the name of a note's annotation.
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

// write adds the notes to an object.
func (n notes) write(v vocabulary.Vocabulary, object map[string]any) {
	for name, text := range n {
		edit.Annotate(object, annotationOf(v, name), text)
	}
}

// encode adds a note, unless the value is an empty list.
func (n notes) encode(name string, value any) {
	if list, ok := value.([]any); ok && len(list) == 0 {
		return
	}
	if text, err := json.Marshal(value); err == nil {
		n[name] = string(text)
	}
}

// encodeAs adds a note of a list whose items have the members of T in the order of T, as
// Kubernetes writes them.
func encodeAs[T any](n notes, name string, list []any) {
	if len(list) == 0 {
		return
	}
	var typed []T
	if text, err := json.Marshal(list); err == nil && json.Unmarshal(text, &typed) == nil {
		n.encode(name, typed)
	}
}

// keep adds a note of metrics that the round trip would change.
func (n notes) keep(name string, metrics []any, through func([]any) []any) {
	if len(metrics) > 0 && !reflect.DeepEqual(through(metrics), metrics) {
		n.encode(name, metrics)
	}
}

// recall returns the original metrics if their round trip results in the given ones, else
// the given ones.
func recall(metrics, original []any, through func([]any) []any) []any {
	if len(original) > 0 && reflect.DeepEqual(through(original), metrics) {
		return original
	}
	return metrics
}

// decoded returns the list in a note; empty if it is absent or invalid. Clients can write
// annotations, so the note is decoded into T, which drops everything else.
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

// withoutNulls removes null members, in place.
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
