// Package protobuf writes and reads the Protobuf form of objects (section
// "Protobuf envelope" of the specification): between an object's JSON and its
// message, and around messages the envelope, lists and watch frames. Names of
// groups are those of the vocabulary in use.
//
// What the published Go types say of themselves is compiled once into a plan per
// type, by which JSON is turned into the message in one pass and without Go
// values in between. The message is byte for byte the one that the generated
// code makes; whatever a plan does not know takes the way through that code.
//
// This package knows nothing of requests, and types without a published Go type
// have no Protobuf here.
package protobuf

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/k8stypes"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Registry finds the messages of a kind. It is safe for concurrent use.
type Registry struct {
	types       *runtime.Scheme
	vocabulary  vocabulary.Vocabulary
	transcoders *sync.Pool

	mu    sync.Mutex
	found map[schema.GroupVersionKind]*Message
	plans compiler
}

// NewRegistry returns the registry of a vocabulary.
func NewRegistry(v vocabulary.Vocabulary) *Registry {
	return &Registry{
		types:       k8stypes.Types(),
		vocabulary:  v,
		transcoders: &sync.Pool{New: func() any { return &transcoder{} }},
		found:       map[schema.GroupVersionKind]*Message{},
		plans:       compiler{},
	}
}

// generated is what the generated code of the published types offers.
type generated interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Message is the messages of one kind.
type Message struct {
	Kind        schema.GroupVersionKind
	goType      reflect.Type
	plan        *plan // nil when there is none
	transcoders *sync.Pool
	// extension is the prefix of schema extensions where it is not that of the published
	// types; empty for kinds without schemas.
	extension string
}

// Find returns the messages of a kind; an error when it has no Protobuf form.
func (r *Registry) Find(kind schema.GroupVersionKind) (*Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.found[kind]; ok {
		return m, nil
	}
	original := kind
	original.Group = vocabulary.K8s().Group(r.vocabulary.ShortGroup(kind.Group))
	object, err := r.types.New(original)
	if err != nil {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	if _, ok := object.(generated); !ok {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	m := &Message{Kind: kind, goType: reflect.TypeOf(object).Elem(), transcoders: r.transcoders}
	if p, err := r.plans.plan(m.goType); err == nil {
		m.plan = p
	}
	if kind.Kind == definitionKind && r.vocabulary.Extension != publishedExtension {
		m.extension = r.vocabulary.Extension
	}
	r.found[kind] = m
	return m, nil
}

// Knows reports whether a kind has a Protobuf form.
func (r *Registry) Knows(kind schema.GroupVersionKind) bool {
	_, err := r.Find(kind)
	return err == nil
}

// Above these sizes a transcoder is left to the collector.
const (
	largestKept = 1 << 20
	mostEntries = 4 << 10
)

// Append appends the message of an object's JSON, without an envelope.
func (m *Message) Append(dst, object []byte) ([]byte, error) {
	if m.plan != nil {
		t := m.transcoders.Get().(*transcoder)
		dst, ok := t.transcode(dst, m.plan, object)
		if cap(t.out) <= largestKept && cap(t.entries) <= mostEntries {
			m.transcoders.Put(t)
		}
		if ok {
			return dst, nil
		}
	}
	message, err := m.encode(object)
	return append(dst, message...), err
}

// encode takes the way through the published type.
func (m *Message) encode(object []byte) ([]byte, error) {
	o := reflect.New(m.goType).Interface().(generated)
	if m.extension != "" {
		renamed, err := m.published(object)
		if err != nil {
			return nil, fmt.Errorf("%s as Protobuf: %w", m.Kind, err)
		}
		object = renamed
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(object, o); err != nil {
		return nil, fmt.Errorf("%s as Protobuf: %w", m.Kind, err)
	}
	return o.Marshal()
}

// Decode returns the object of a message, with integers as int64.
func (m *Message) Decode(body []byte) (map[string]any, error) {
	o := reflect.New(m.goType).Interface().(generated)
	if err := o.Unmarshal(body); err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = m.Kind.GroupVersion().String(), m.Kind.Kind
	if m.extension != "" {
		renameExtensions(object, publishedExtension, m.extension)
	}
	return object, nil
}
