package services

import (
	"context"
	"slices"
	"time"

	"github.com/portico-platform/portico/services/resource"
)

// WatchHub returns changes (sections "Watch procedure" and "Events"). It follows etcd,
// publishes every change once on the bus, and keeps a window of recent changes in
// memory; older ones come from etcd's history until that is compacted.
//
// Live changes are published on the bus (package changes joins both into one gap-free
// sequence); this contract returns missed ones. The front door, authn, authz and
// admission may call it.
type WatchHub interface {
	// Replay returns the changes of one resource type after a revision, oldest first.
	// Expired (410) if changes after r.After are no longer available, or if r.After
	// belongs to a history that ended because etcd was restored.
	Replay(ctx context.Context, r ReplayRequest) (Replay, error)

	// Keys returns the keys to open the messages on the bus about one resource type,
	// and those about progress. Only callers that may read the type may call it.
	Keys(ctx context.Context, r KeysRequest) (Keys, error)
}

// ChangeType is the type of a change.
type ChangeType uint8

const (
	Added ChangeType = iota + 1
	Modified
	Deleted
)

// String returns the watch event type: ADDED, MODIFIED or DELETED.
func (t ChangeType) String() string {
	switch t {
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	}
	return "UNKNOWN"
}

// Change is one change of one object.
type Change struct {
	Type ChangeType
	// Previous is the revision of the previous change of the same resource type, or a
	// revision through which the hub has seen all changes of it. A reader that has seen
	// everything through Previous has, with this change, seen everything through
	// Object.Revision.
	Previous int64
	// Object is the object after the change; for Deleted its last state, carrying
	// the revision of the deletion.
	Object Object
	// OldLabels and OldFields are those before the change; nil for Added.
	OldLabels map[string]string
	OldFields map[string]string
	// OldJSON is the object before the change, with the revision of the change. It is set if labels or fields
	// have changed: watchers whose selector no longer matches get this state.
	OldJSON []byte
	// Trace names the span of the write in its trace: 16 bytes of trace ID, 8 of span
	// ID. It is empty unless the write was sampled, and for Deleted, which leaves nothing
	// in etcd to read it from.
	Trace []byte
}

// Progress reports how far the hub has published, so that the position of types without changes advances, and
// the loss of the last change is detected.
type Progress struct {
	// Through is a revision up to which every change has been published.
	Through int64
	// Floor is a revision after which no resource type changed that is not in Heads.
	Floor int64
	// Heads is the newest revision of each resource type that changed after Floor.
	Heads map[resource.GroupResource]int64
	// Epoch is that of the revisions, as in Page.
	Epoch string
	// Only are the types that this covers, and Except those that it does not cover: types in a separate etcd
	// have separate progress. If both are empty it covers all types.
	Only, Except []resource.GroupResource
}

// About reports whether the progress covers a type.
func (p Progress) About(gr resource.GroupResource) bool {
	return !slices.Contains(p.Except, gr) && (len(p.Only) == 0 || slices.Contains(p.Only, gr))
}

// ReplayRequest requests the changes of one resource type after a revision.
type ReplayRequest struct {
	GroupResource resource.GroupResource
	After         int64
	// Limit is the maximum number of changes in the response; with 0 the hub chooses.
	Limit int
}

// Replay is a sequence of changes.
type Replay struct {
	Changes []Change
	// Through is the revision up to which this sequence is complete: continue there.
	Through int64
	// More is true if the hub already has further changes after Through.
	More bool
	// Epoch is that of the revisions, as in Page. A follower of another epoch must not append this sequence.
	Epoch string
}

// KeysRequest requests the keys of one resource type.
type KeysRequest struct {
	GroupResource resource.GroupResource
	// ID is an unknown key of a message that the caller has received; nil for none. A
	// hub that does not know it either reads etcd before it responds.
	ID []byte
}

// Keys are the keys in use, oldest first: the last one seals, and the others may have
// sealed messages that are still in flight.
type Keys struct {
	Keys []BusKey
}

// BusKey opens messages on the bus (services/kit/seal). It cannot seal any: that requires
// the hub's private key.
type BusKey struct {
	ID []byte // 8 bytes
	// Changes opens messages about the resource type, Progress those about progress.
	// Both have 32 bytes.
	Changes, Progress []byte
	// Public is the Ed25519 key that verifies the hub's signatures.
	Public []byte
	// Lifetime is how long the key may still be accepted; 0 means without limit.
	Lifetime time.Duration
}
