package wire

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// messageList writes lists in Protobuf. The envelope starts with the size of the whole
// message, so all items are encoded and held until End, in pooled buffers. Cached messages are
// shared with other lists.
type messageList struct {
	e     *Encoder
	w     io.Writer
	meta  metav1.ListMeta
	size  int // of all items, in the envelope
	items [][]byte
	held  []*[]byte // the buffers
}

func (l *messageList) Begin(meta ListMeta) error {
	l.meta = metav1.ListMeta{Continue: meta.Continue, RemainingItemCount: meta.Remaining}
	if meta.Revision != 0 {
		l.meta.ResourceVersion = resource.FormatResourceVersion(meta.Revision)
	}
	return nil
}

func (l *messageList) Item(o services.Object) error {
	last := len(l.held) - 1
	if last < 0 || cap(*l.held[last])-len(*l.held[last]) < len(o.JSON) {
		l.held = append(l.held, l.e.codec.buffer())
		last++
	}
	message, err := l.e.message(o, l.held[last])
	if err != nil {
		return err
	}
	l.items = append(l.items, message)
	l.size += protobuf.ItemSize(len(message))
	return nil
}

func (l *messageList) End() error {
	buffer := l.e.codec.buffer()
	defer l.e.codec.recycle(buffer)
	head, err := protobuf.ListHead(l.e.listKind(), l.meta, l.size)
	if err != nil {
		return err
	}
	*buffer = append(*buffer, head...)
	for _, message := range l.items {
		*buffer = append(protobuf.AppendItemHead(*buffer, len(message)), message...)
		if len(*buffer) < chunk {
			continue
		}
		if _, err := l.w.Write(*buffer); err != nil {
			return err
		}
		*buffer = (*buffer)[:0]
	}
	for _, b := range l.held {
		l.e.codec.recycle(b)
	}
	*buffer = append(*buffer, protobuf.Tail...)
	_, err = l.w.Write(*buffer)
	return err
}
