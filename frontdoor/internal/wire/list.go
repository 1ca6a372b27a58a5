package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// ListMeta is the metadata of a list.
type ListMeta struct {
	Revision  int64  // 0 omits the resourceVersion
	Continue  string // token for the next chunk; empty at the end
	Remaining *int64 // objects after this chunk; nil if unknown

	ofObject bool // a Table of one object, without continue
}

// ListWriter writes one list: Begin, then Item for each object, then End. It must not be
// used after an error.
type ListWriter interface {
	Begin(ListMeta) error
	Item(services.Object) error
	End() error
}

// chunk is the approximate size of one write, in bytes: with most objects a little less than
// the 64 KiB that package pace passes on in one piece. Each write is a handover to the
// goroutine of the connection and back.
const chunk = 56 << 10

// List returns the writer of a response with a list. It buffers up to a chunk before the
// first write.
func (e *Encoder) List(w http.ResponseWriter) ListWriter {
	w.Header().Set("Content-Type", e.form.ContentType)
	if e.form.Media == Protobuf {
		return &messageList{e: e, w: w}
	}
	l := &textList{e: e, w: w, buffer: e.codec.buffer()}
	switch {
	case e.form.Media == YAML:
		l.layout = yamlLayout{}
	case e.form.Pretty:
		l.layout = prettyLayout{}
	}
	return l
}

// textList writes lists in JSON, indented JSON and YAML.
type textList struct {
	e      *Encoder
	w      io.Writer
	buffer *[]byte
	layout layout // nil for compact JSON, which needs no conversion
	items  int
}

func (l *textList) Begin(meta ListMeta) error {
	dst := l.e.appendListHead(*l.buffer, meta)
	if l.layout != nil {
		head := bytes.Clone(dst)
		var err error
		if dst, err = l.layout.begin(dst[:0], head); err != nil {
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
			dst, err = l.layout.item(dst, item, l.items == 0)
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

func (l *textList) End() error {
	if l.layout == nil {
		*l.buffer = append(*l.buffer, "]}\n"...)
	} else {
		*l.buffer = l.layout.end(*l.buffer, l.items == 0)
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
	if meta.Continue != "" || c.vocabulary.Behaviour.ContinueAlways && !meta.ofObject {
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

// layout converts the parts of a list from compact JSON. The head ends with the opening
// bracket of the items.
type layout interface {
	begin(dst, head []byte) ([]byte, error)
	item(dst, item []byte, first bool) ([]byte, error)
	end(dst []byte, empty bool) []byte
}

// prettyLayout is indented JSON.
type prettyLayout struct{}

func (prettyLayout) begin(dst, head []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	err := json.Indent(out, append(head, "]}"...), "", "  ")
	return out.Bytes()[:bytes.LastIndexByte(out.Bytes(), '[')+1], err
}

func (prettyLayout) item(dst, item []byte, first bool) ([]byte, error) {
	if !first {
		dst = append(dst, ',')
	}
	out := bytes.NewBuffer(append(dst, "\n    "...))
	err := json.Indent(out, item, "    ", "  ")
	return out.Bytes(), err
}

func (prettyLayout) end(dst []byte, empty bool) []byte {
	if !empty {
		dst = append(dst, "\n  "...)
	}
	return append(dst, "]\n}\n"...)
}

// yamlLayout is YAML, with the items as the last member.
type yamlLayout struct{}

func (yamlLayout) begin(dst, head []byte) ([]byte, error) {
	cut := bytes.LastIndexByte(head, ',')
	name := bytes.Trim(head[cut+1:], `":[`)
	converted, err := yaml.JSONToYAML(append(bytes.Clone(head[:cut]), '}'))
	dst = append(append(dst, converted...), name...)
	return append(dst, ':'), err
}

func (yamlLayout) item(dst, item []byte, first bool) ([]byte, error) {
	if first {
		dst = append(dst, '\n')
	}
	converted, err := yaml.JSONToYAML(item)
	indent := "- "
	for line := range bytes.Lines(converted) {
		dst = append(append(dst, indent...), line...)
		indent = "  "
	}
	return dst, err
}

func (yamlLayout) end(dst []byte, empty bool) []byte {
	if empty {
		return append(dst, " []\n"...)
	}
	return dst
}

var _ ListWriter = (*textList)(nil)
