package wire

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Types of watch events that are not changes of objects.
const (
	EventBookmark = "BOOKMARK"
	EventError    = "ERROR"
)

// EventEncoder encodes the frames of one watch, in order. Frames may be written together or
// one by one. They are the same for all watches of the same form, except that only the
// first Table of a watch has column definitions.
type EventEncoder struct {
	e     *Encoder
	begun bool
}

// Events returns the encoder of one watch.
func (e *Encoder) Events() *EventEncoder { return &EventEncoder{e: e} }

// Event appends a change of type ADDED, MODIFIED or DELETED, as services.ChangeType spells
// it.
func (v *EventEncoder) Event(dst []byte, event string, o services.Object) ([]byte, error) {
	if v.e.form.Media == Protobuf {
		buffer := v.e.codec.buffer()
		defer v.e.codec.recycle(buffer)
		message, err := v.e.message(o, buffer)
		if err != nil {
			return dst, err
		}
		return protobuf.AppendFrame(dst, event, v.e.messages.Kind, message), nil
	}
	start := len(dst)
	dst = append(dst, `{"type":"`...)
	dst = append(dst, event...)
	dst = append(dst, `","object":`...)
	dst, err := v.e.appendJSON(dst, o, !v.begun)
	if err != nil {
		return dst, err
	}
	v.begun = true
	return v.framed(dst, start)
}

// framed ends the frame whose JSON begins at start.
func (v *EventEncoder) framed(dst []byte, start int) ([]byte, error) {
	if v.e.form.Media == CBOR {
		return cbor.Append(dst[:start], append(bytes.Clone(dst[start:]), '}'))
	}
	return append(dst, "}\n"...), nil
}

// Bookmark appends a BOOKMARK: an object of the type that has only a resourceVersion and
// optional annotations.
func (v *EventEncoder) Bookmark(dst []byte, revision int64, annotations map[string]string) ([]byte, error) {
	object, err := json.Marshal(map[string]any{
		"kind": v.e.t.Kind, "apiVersion": v.e.t.APIVersion(),
		"metadata": bookmarkMeta{resource.FormatResourceVersion(revision), annotations},
	})
	if err != nil {
		return dst, err
	}
	return v.Event(dst, EventBookmark, services.Object{Revision: revision, JSON: object})
}

type bookmarkMeta struct {
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// Error appends an ERROR with the Status of err, which is the last frame of a watch.
func (v *EventEncoder) Error(dst []byte, err error) ([]byte, error) {
	status := outcome.Of(err)
	if v.e.form.Media == Protobuf {
		message, err := status.Marshal()
		return protobuf.AppendFrame(dst, EventError, statusKind, message), err
	}
	object, err := json.Marshal(status)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, `{"type":"ERROR","object":`...)
	return v.framed(append(dst, object...), start)
}

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}
