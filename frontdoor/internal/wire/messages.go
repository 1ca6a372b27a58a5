package wire

import (
	"errors"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// heldBytes is how much of a list in Protobuf is encoded before its first byte is written. What is larger is
// encoded twice: first for its size alone.
const heldBytes = 32 << 20

// messageList writes lists in Protobuf. The envelope starts with the size of the whole
// message, so all items are encoded and held until End, in pooled buffers, up to heldBytes. Cached messages are
// shared with other lists.
type messageList struct {
	e     *Encoder
	w     io.Writer
	meta  metav1.ListMeta
	size  int // of all items, in the envelope
	items [][]byte
	held  []*[]byte // the buffers
	bytes int       // in the buffers
	most  int       // that the buffers may have
	// out is the buffer of what is written: in the second pass, after Again. left is the size of the items that are to come.
	out     *[]byte
	left    int
	dropped bool // the items are not held: a second pass is needed
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
	if last < 0 || cap(*l.held[last])-len(*l.held[last]) < len(o.JSON) && !l.dropped {
		l.held = append(l.held, l.e.codec.buffer())
		last++
	}
	before := len(*l.held[last])
	message, err := l.e.message(o, l.held[last])
	if err != nil {
		return err
	}
	if l.out != nil {
		err := l.write(message)
		*l.held[last] = (*l.held[last])[:0]
		return err
	}
	l.size += protobuf.ItemSize(len(message))
	l.bytes += len(*l.held[last]) - before
	switch {
	case l.dropped:
		*l.held[last] = (*l.held[last])[:0]
	case l.bytes > l.most:
		l.drop()
	default:
		l.items = append(l.items, message)
	}
	return nil
}

// drop gives back the items, whose sizes are still summed up.
func (l *messageList) drop() {
	for _, b := range l.held[1:] {
		l.e.codec.recycle(b)
	}
	clear(l.held[1:])
	l.items, l.held, l.dropped = nil, l.held[:1], true
	*l.held[0] = (*l.held[0])[:0]
}

// Again is ListWriter.Again. A list that is too large is encoded a second time, when the first has measured it.
func (l *messageList) Again() (bool, error) {
	if !l.dropped {
		return false, nil
	}
	return true, l.begin()
}

// begin begins to write the list.
func (l *messageList) begin() error {
	l.out, l.left = l.e.codec.buffer(), l.size
	head, err := protobuf.ListHead(l.e.listKind(), l.meta, l.size)
	*l.out = append(*l.out, head...)
	return err
}

// errOtherList means that a list that was encoded twice was not the same: clients cannot read what has been written.
var errOtherList = errors.New("the objects of a list have changed while it was sent")

func (l *messageList) write(message []byte) error {
	if l.left -= protobuf.ItemSize(len(message)); l.left < 0 {
		return errOtherList
	}
	*l.out = append(protobuf.AppendItemHead(*l.out, len(message)), message...)
	if len(*l.out) < chunk {
		return nil
	}
	_, err := l.w.Write(*l.out)
	*l.out = (*l.out)[:0]
	return err
}

func (l *messageList) End() error {
	if l.out == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	defer l.e.codec.recycle(l.out)
	for _, message := range l.items {
		if err := l.write(message); err != nil {
			return err
		}
	}
	if l.left != 0 {
		return errOtherList
	}
	for _, b := range l.held {
		l.e.codec.recycle(b)
	}
	*l.out = append(*l.out, protobuf.Tail...)
	_, err := l.w.Write(*l.out)
	return err
}
