// Package protobuf writes and reads the Protobuf form of objects (section
// "Protobuf envelope" of the specification): between an object's JSON and its
// message, by way of the published Go types, and around messages the envelope,
// lists and watch frames. Names of groups are those of the vocabulary in use. It
// knows nothing of requests, and types without a published Go type have no
// Protobuf here.
package protobuf

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Registry finds the message type of a kind. It is safe for concurrent use.
type Registry struct {
	types      *runtime.Scheme
	vocabulary vocabulary.Vocabulary
}

// NewRegistry returns the registry of a vocabulary.
func NewRegistry(v vocabulary.Vocabulary) *Registry {
	return &Registry{types: published(), vocabulary: v}
}

// message is what the generated code of the published types offers.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Knows tells whether a kind has a Protobuf form.
func (r *Registry) Knows(kind schema.GroupVersionKind) bool {
	_, err := r.new(kind)
	return err == nil
}

func (r *Registry) new(kind schema.GroupVersionKind) (message, error) {
	original := kind
	original.Group = vocabulary.K8s().Group(r.vocabulary.ShortGroup(kind.Group))
	object, err := r.types.New(original)
	if err != nil {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	m, ok := object.(message)
	if !ok {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	return m, nil
}

// Encode returns the message of an object's JSON, without an envelope.
func (r *Registry) Encode(kind schema.GroupVersionKind, object []byte) ([]byte, error) {
	m, err := r.new(kind)
	if err != nil {
		return nil, err
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(object, m); err != nil {
		return nil, fmt.Errorf("%s as Protobuf: %w", kind, err)
	}
	return m.Marshal()
}

// Decode returns the object of a message, with integers as int64.
func (r *Registry) Decode(kind schema.GroupVersionKind, body []byte) (map[string]any, error) {
	m, err := r.new(kind)
	if err != nil {
		return nil, err
	}
	if err := m.Unmarshal(body); err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	return object, nil
}
