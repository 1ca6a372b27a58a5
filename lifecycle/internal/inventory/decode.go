package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// linkMetadata holds the metadata fields that link objects. No others are decoded.
type linkMetadata struct {
	Metadata struct {
		Namespace         string                  `json:"namespace"`
		Name              string                  `json:"name"`
		UID               types.UID               `json:"uid"`
		ResourceVersion   string                  `json:"resourceVersion"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		Finalizers        []string                `json:"finalizers"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

func (t *linkMetadata) object() metav1.PartialObjectMetadata {
	m := &t.Metadata
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp, Finalizers: m.Finalizers, OwnerReferences: m.OwnerReferences,
	}}
}

// decodeEvent decodes an event of a watch and modifies its bytes. The object of an
// error is a Status.
func decodeEvent(line []byte) (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object linkMetadata    `json:"object"`
	}
	line = withoutManagedFields(line)
	if err := json.Unmarshal(line, &event); err != nil {
		return "", nil, fmt.Errorf("watch: %w", err)
	}
	if event.Type == watch.Error {
		var failure struct {
			Object metav1.Status `json:"object"`
		}
		err := json.Unmarshal(line, &failure)
		return event.Type, &failure.Object, err
	}
	object := event.Object.object()
	return event.Type, &object, nil
}

// decodeList decodes a page of a list and modifies its bytes.
func decodeList(body []byte) (*metav1.PartialObjectMetadataList, error) {
	var page struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []linkMetadata  `json:"items"`
	}
	if err := json.Unmarshal(withoutManagedFields(body), &page); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: page.Metadata, Items: make([]metav1.PartialObjectMetadata, len(page.Items))}
	for i := range page.Items {
		list.Items[i] = page.Items[i].object()
	}
	return list, nil
}

// managedFields matches the end of a key only: within a string the quote would be
// escaped.
const managedFields = `"managedFields":`

// withoutManagedFields replaces the lists of managedFields with null, in place. They
// are most of an object's metadata: for an event of 6 KB decoding was measured at 210
// µs with them, at 34 µs without them, and at 580 µs in client-go. Whatever it misses,
// or is malformed, is left to the decoder.
func withoutManagedFields(text []byte) []byte {
	kept := text[:0]
	for {
		i := bytes.Index(text, []byte(managedFields))
		if i < 0 {
			return append(kept, text...)
		}
		i += len(managedFields)
		kept = append(kept, text[:i]...)
		text = text[i:]
		if size := listSize(text); size > len("null") {
			kept = append(kept, "null"...)
			text = text[size:]
		}
	}
}

// listSize returns the length of the list at the start of the text, 0 if there is none.
func listSize(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}
