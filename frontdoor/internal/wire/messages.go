package wire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// heldBytes is about how much of a list in Protobuf is held ready. A page of the
// size that clients ask for stays below.
const heldBytes = 4 << 20

// messageList writes lists in Protobuf: one envelope, which says in its head how
// long it is. The first messages are held until then; of the others only the
// size is kept and the object itself, which the store holds anyway, and they are
// made a second time. So a list needs no second copy of itself, however long.
type messageList struct {
	e    *Encoder
	w    io.Writer
	meta metav1.ListMeta
	size int       // of all items
	held []*[]byte // chunks with the first items
	rest []measured
	made *[]byte // the last message
}

// measured is an item whose message will be made again.
type measured struct {
	json []byte
	size int
}

func (l *messageList) Begin(meta ListMeta) error {
	l.meta = metav1.ListMeta{Continue: meta.Continue, RemainingItemCount: meta.Remaining}
	if meta.Revision != 0 {
		l.meta.ResourceVersion = resource.FormatVersion(meta.Revision)
	}
	l.made = l.e.codec.buffer()
	l.held = append(l.held, l.e.codec.buffer())
	return nil
}

func (l *messageList) Item(o services.Object) error {
	if err := l.make(o.JSON); err != nil {
		return err
	}
	size := len(*l.made)
	l.size += protobuf.ItemSize(size)
	if len(l.held) > heldBytes/chunk {
		l.rest = append(l.rest, measured{o.JSON, size})
		return nil
	}
	last := l.held[len(l.held)-1]
	*last = append(protobuf.AppendItemHead(*last, size), *l.made...)
	if len(*last) >= chunk {
		l.held = append(l.held, l.e.codec.buffer())
	}
	return nil
}

func (l *messageList) make(object []byte) error {
	message, err := l.e.messages.Append((*l.made)[:0], object)
	*l.made = message
	return err
}

func (l *messageList) End() error {
	head, err := protobuf.ListHead(l.e.listKind(), l.meta, l.size)
	if err != nil {
		return err
	}
	if _, err := l.w.Write(head); err != nil {
		return err
	}
	for _, piece := range l.held {
		if err := l.flush(piece); err != nil {
			return err
		}
	}
	return l.writeRest(l.held[0])
}

// writeRest makes and writes what was not held, by way of a buffer, and ends the
// list.
func (l *messageList) writeRest(buffer *[]byte) error {
	for _, item := range l.rest {
		if err := l.make(item.json); err != nil {
			return err
		}
		if len(*l.made) != item.size {
			return fmt.Errorf("an object of a list has changed while it was written")
		}
		*buffer = append(protobuf.AppendItemHead(*buffer, item.size), *l.made...)
		if len(*buffer) < chunk {
			continue
		}
		if err := l.flush(buffer); err != nil {
			return err
		}
	}
	*buffer = append(*buffer, protobuf.Tail...)
	if err := l.flush(buffer); err != nil {
		return err
	}
	for _, piece := range append(l.held, l.made) {
		l.e.codec.release(piece)
	}
	return nil
}

// flush writes a buffer and empties it.
func (l *messageList) flush(buffer *[]byte) error {
	_, err := l.w.Write(*buffer)
	*buffer = (*buffer)[:0]
	return err
}

var _ ListWriter = (*messageList)(nil)
