// Package protobuf converts between the JSON of objects and their Protobuf messages, and
// encodes envelopes, lists and watch frames (section "Protobuf envelope" of the
// specification). Names of groups are those of the vocabulary in use.
//
// Each published Go type is compiled once into a plan, by which JSON is transcoded into the
// message in one pass and without intermediate Go values. The message is identical to that
// of the generated code, which is the slow path for everything that a plan does not
// support.
//
// Types without a published Go type have no Protobuf form.
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

// Registry looks up the messages of kinds. It is safe for concurrent use.
type Registry struct {
	types       *runtime.Scheme
	vocabulary  vocabulary.Vocabulary
	transcoders *sync.Pool

	mu     sync.Mutex
	found  map[schema.GroupVersionKind]*Message
	plans  compiler
	weighs weigher
}

// NewRegistry returns the registry of a vocabulary.
func NewRegistry(v vocabulary.Vocabulary) *Registry {
	return &Registry{
		types:       k8stypes.Types(),
		vocabulary:  v,
		transcoders: &sync.Pool{New: func() any { return &transcoder{} }},
		found:       map[schema.GroupVersionKind]*Message{},
		plans:       compiler{},
		weighs:      weigher{},
	}
}

// generated is implemented by the published Go types.
type generated interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Message encodes and decodes the messages of one kind.
type Message struct {
	Kind        schema.GroupVersionKind
	goType      reflect.Type
	plan        *plan // nil if the type has none
	weight      weight
	transcoders *sync.Pool
	// extension is the prefix of schema extensions if it differs from that of the published
	// Go types; "" for kinds without schemas.
	extension string
}

// sameMessages has the versions of 1.21 that no longer have Go types and whose messages are
// those of a later version, by the original names.
var sameMessages = map[schema.GroupVersion]string{{Group: "autoscaling", Version: "v2beta2"}: "v2"}

// Find returns the messages of a kind. It returns an error if the kind has no Protobuf
// form.
func (r *Registry) Find(kind schema.GroupVersionKind) (*Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.found[kind]; ok {
		return m, nil
	}
	original := kind
	original.Group = vocabulary.K8s().Group(r.vocabulary.ShortGroup(kind.Group))
	if later, ok := sameMessages[original.GroupVersion()]; ok {
		original.Version = later
	}
	object, err := r.types.New(original)
	if err != nil {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	if _, ok := object.(generated); !ok {
		return nil, fmt.Errorf("%s has no Protobuf form", kind)
	}
	m := &Message{Kind: kind, goType: reflect.TypeOf(object).Elem(), transcoders: r.transcoders, weight: r.weighs.weigh(reflect.TypeOf(object).Elem())}
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

// Limits above which a transcoder is not reused.
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

// encode is the slow path, through the published Go type.
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

// Decode decodes a message into an object with integers as int64. It returns
// RequestEntityTooLarge (413) for a message that takes much more memory than it has bytes, and a
// tree.DepthError for a large one that is nested too deeply. charge is called before with the
// memory that decoding a message takes, in bytes, unless that is small; its error is returned. It
// may be nil.
func (m *Message) Decode(body []byte, charge func(int) error) (map[string]any, error) {
	if err := m.checkWeight(body, charge); err != nil {
		return nil, err
	}
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
