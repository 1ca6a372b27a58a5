package changes

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

// SubjectProgress is the subject of the hub's progress reports. It has fewer tokens than
// the subjects of changes, so it is not one of them.
const SubjectProgress = "changes.progress"

// Subject returns the subject of the changes of a resource type:
// changes.<group>.<resource>. The core group is written core, and the dots of a
// group are written _, because a dot ends a token; no group contains an
// underscore. The group of a custom type has one in front, so that no custom type
// has the subject of a built-in one.
func Subject(gr resource.GroupResource) string {
	group := gr.Group
	if group == "" {
		group = "core"
	}
	if gr.Custom {
		group = "_" + group
	}
	return "changes." + strings.ReplaceAll(group, ".", "_") + "." + gr.Resource
}

// A message on the bus is a sequence of changes of one type: a repeated Protobuf field with
// this number, so that changes can be appended to an encoded message.
const fieldChange protowire.Number = 1

var errMessage = errors.New("not a message of changes")

// AppendChange appends a change to a message, which is nil at first.
func AppendChange(message []byte, c services.Change) ([]byte, error) {
	encoded, err := rpc.EncodeChange(c)
	if err != nil {
		return nil, err
	}
	if message == nil {
		message = make([]byte, 0, len(encoded)+8)
	}
	message = protowire.AppendTag(message, fieldChange, protowire.BytesType)
	return protowire.AppendBytes(message, encoded), nil
}

// decodeChanges decodes a message.
func decodeChanges(message []byte) ([]services.Change, error) {
	var changes []services.Change
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 || number != fieldChange || kind != protowire.BytesType {
			return nil, errMessage
		}
		encoded, m := protowire.ConsumeBytes(message[n:])
		if m < 0 {
			return nil, errMessage
		}
		change, err := rpc.DecodeChange(encoded)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
		message = message[n+m:]
	}
	return changes, nil
}
