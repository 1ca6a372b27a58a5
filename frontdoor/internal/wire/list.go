package wire

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire/layout"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// ListMeta is the metadata of a list.
type ListMeta struct {
	Revision  int64  // 0 omits the resourceVersion
	Continue  string // token for the next chunk; empty at the end
	Remaining *int64 // objects after this chunk; nil if unknown

	ofObject bool // a Table of one object, without continue
	custom   bool // whole objects of a custom type, whose lists always have continue, as in Kubernetes
}

// ListWriter writes one list: Begin, then Item for each object, then Again, then End. It must not be
// used after an error.
type ListWriter interface {
	Begin(ListMeta) error
	Item(services.Object) error
	// Again reports whether Item must be called for the same objects once more.
	Again() (bool, error)
	End() error
}

// chunk is the approximate size of one write, in bytes. Each is a handover between goroutines;
// with one more object, most fit into the 64 KiB that package pace passes on in one piece.
const chunk = 56 << 10

// List returns the writer of a response with a list. It buffers up to a chunk before the
// first write.
func (e *Encoder) List(w http.ResponseWriter) ListWriter {
	w.Header().Set("Content-Type", e.form.ContentType)
	if e.form.Media == Protobuf {
		return &messageList{e: e, w: w, most: heldBytes}
	}
	return &textList{e: e, w: w, buffer: e.codec.buffer(), layout: e.form.layout()}
}

// textList writes lists in JSON, indented JSON, YAML and CBOR.
type textList struct {
	e      *Encoder
	w      io.Writer
	buffer *[]byte
	layout layout.Layout // nil for compact JSON, which needs no conversion
	items  int
}

func (l *textList) Begin(meta ListMeta) error {
	dst := l.e.appendListHead(*l.buffer, meta)
	if l.layout != nil {
		head := bytes.Clone(dst)
		var err error
		if dst, err = l.layout.Begin(dst[:0], head); err != nil {
			return err
		}
	}
	*l.buffer = dst
	return nil
}

func (l *textList) Item(o services.Object) error {
	dst, err := *l.buffer, error(nil)
	if l.layout == nil {
		if l.items > 0 {
			dst = append(dst, ',')
		}
		dst, err = l.e.appendItem(dst, o)
	} else {
		var item []byte
		if item, err = l.e.appendItem(nil, o); err == nil {
			dst, err = l.layout.Item(dst, item, l.items == 0)
		}
	}
	if err != nil {
		return err
	}
	*l.buffer = dst
	l.items++
	if len(dst) >= chunk {
		return l.flush()
	}
	return nil
}

func (l *textList) Again() (bool, error) { return false, nil }

func (l *textList) End() error {
	if l.layout == nil {
		*l.buffer = append(*l.buffer, "]}\n"...)
	} else {
		*l.buffer = l.layout.End(*l.buffer, l.items == 0)
	}
	err := l.flush()
	l.e.codec.recycle(l.buffer)
	l.buffer = nil
	return err
}

func (l *textList) flush() error {
	_, err := l.w.Write(*l.buffer)
	*l.buffer = (*l.buffer)[:0]
	return err
}

// appendListHead appends everything before the first item, in compact JSON.
func (e *Encoder) appendListHead(dst []byte, meta ListMeta) []byte {
	if e.form.As == Table {
		return e.appendTableHead(dst, meta, true)
	}
	meta.custom = e.t.Custom && e.form.As == Whole
	dst = appendTypeMeta(dst, e.listKind())
	dst = e.codec.appendListMeta(dst, meta)
	return append(dst, `,"items":[`...)
}

func (e *Encoder) listKind() schema.GroupVersionKind {
	if e.form.As == Partial {
		return e.codec.metaKind(e.form.MetaVersion, kindPartialList)
	}
	kind := kindOf(e.t)
	kind.Kind = e.t.ListKind
	return kind
}

// appendListMeta appends the metadata member of a list.
func (c *Codec) appendListMeta(dst []byte, meta ListMeta) []byte {
	dst = append(dst, `,"metadata":{`...)
	start := len(dst)
	if meta.Revision != 0 {
		dst = append(dst, `"resourceVersion":"`...)
		dst = append(dst, resource.FormatResourceVersion(meta.Revision)...)
		dst = append(dst, `",`...)
	}
	if meta.Continue != "" || meta.custom || c.vocabulary.Behaviour.ContinueAlways && !meta.ofObject {
		dst = append(dst, `"continue":`...)
		dst = strconv.AppendQuote(dst, meta.Continue) // tokens are plain ASCII
		dst = append(dst, ',')
	}
	if meta.Remaining != nil {
		dst = append(dst, `"remainingItemCount":`...)
		dst = strconv.AppendInt(dst, *meta.Remaining, 10)
		dst = append(dst, ',')
	}
	if len(dst) > start {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}
