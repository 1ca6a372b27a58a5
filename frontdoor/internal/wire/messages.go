package wire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// messageList writes lists in Protobuf: one envelope, which says in its head how
// long the whole is, so that nothing can be written before all is measured. How
// large messages are is remembered while hot. A message of known size is made
// when it is written; another one is made now and held until then, in chunks and
// up to a bound. What is beyond the bound is made twice.
type messageList struct {
	e     *Encoder
	w     io.Writer
	meta  metav1.ListMeta
	size  int // of all items, in the envelope
	items []messageItem
	held  []*[]byte // chunks with what is made already
	room  int       // how many more chunks may be held
	next  *[]byte   // the message just made
}

// messageItem is an item before it is written.
type messageItem struct {
	text []byte // its message if it is made, else its JSON
	size int    // of the message
	made bool
}

// heldChunks bounds what one list holds, at about 32 MiB.
const heldChunks = (32 << 20) / chunk

func (l *messageList) Begin(meta ListMeta) error {
	l.meta = metav1.ListMeta{Continue: meta.Continue, RemainingItemCount: meta.Remaining}
	if meta.Revision != 0 {
		l.meta.ResourceVersion = resource.FormatVersion(meta.Revision)
	}
	l.next = l.e.codec.buffer()
	return nil
}

func (l *messageList) Item(o services.Object) error {
	made := false
	size, err := l.e.hot(o, l.e.messageForm(cachedSize), func() (any, int, error) {
		made = true
		err := l.make(o.JSON)
		return len(*l.next), 8, err
	})
	if err != nil {
		return err
	}
	item := messageItem{text: o.JSON, size: size.(int)}
	if made && l.room > 0 {
		item.text, item.made = l.hold(*l.next), true
	}
	l.items = append(l.items, item)
	l.size += protobuf.ItemSize(item.size)
	return nil
}

func (l *messageList) make(object []byte) error {
	message, err := l.e.messages.Append((*l.next)[:0], object)
	*l.next = message
	return err
}

// hold copies a message to where it stays until the list is written.
func (l *messageList) hold(message []byte) []byte {
	last := len(l.held) - 1
	if last < 0 || cap(*l.held[last])-len(*l.held[last]) < len(message) {
		l.held = append(l.held, l.e.codec.buffer())
		l.room--
		last++
	}
	into := l.held[last]
	start := len(*into)
	*into = append(*into, message...)
	return (*into)[start:]
}

func (l *messageList) End() error {
	buffer := l.e.codec.buffer()
	defer l.release(buffer)
	head, err := protobuf.ListHead(l.e.listKind(), l.meta, l.size)
	if err != nil {
		return err
	}
	*buffer = append(*buffer, head...)
	for _, item := range l.items {
		message := item.text
		if !item.made {
			if err := l.make(item.text); err != nil {
				return err
			}
			message = *l.next
		}
		if len(message) != item.size {
			return fmt.Errorf("a message of %d bytes was measured as %d", len(message), item.size)
		}
		*buffer = append(protobuf.AppendItemHead(*buffer, item.size), message...)
		if len(*buffer) < chunk {
			continue
		}
		if _, err := l.w.Write(*buffer); err != nil {
			return err
		}
		*buffer = (*buffer)[:0]
	}
	*buffer = append(*buffer, protobuf.Tail...)
	_, err = l.w.Write(*buffer)
	return err
}

func (l *messageList) release(buffer *[]byte) {
	for _, b := range append(l.held, l.next, buffer) {
		l.e.codec.release(b)
	}
	l.held, l.next, l.items = nil, nil, nil
}

var _ ListWriter = (*messageList)(nil)
