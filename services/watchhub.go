package services

import (
	"context"
	"time"

	"github.com/portico-platform/portico/services/resource"
)

// WatchHub answers what happened (sections "Watch procedure" and "Events"). It
// follows etcd, publishes every change once on the bus, and keeps the recent
// window in memory; what is older comes from etcd's history until that is
// compacted.
//
// Live changes travel on the bus (see package changes, which joins both into one
// gap-free sequence); this contract serves what was missed. It may be called by
// the front door, authn, authz and admission.
type WatchHub interface {
	// Replay returns the changes of one resource type after a revision, oldest
	// first. Expired (410) when changes after r.After are no longer held, or when
	// r.After is of a history that ended because etcd was restored.
	Replay(ctx context.Context, r ReplayRequest) (Replay, error)

	// Keys returns the keys that open the messages on the bus about one resource
	// type, and those about progress. It is for callers that may read the type.
	Keys(ctx context.Context, r KeysRequest) (Keys, error)
}

// ChangeType is what happened to an object.
type ChangeType uint8

const (
	Added ChangeType = iota + 1
	Modified
	Deleted
)

// String returns the event type as watchers see it: ADDED, MODIFIED or DELETED.
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
	// Previous is the revision of the change of the same resource type before this
	// one, or a revision through which the hub knows that nothing is missing: who
	// has seen everything through Previous has, with this change, seen everything
	// through Object.Revision.
	Previous int64
	// Object is the object after the change; for Deleted its last state, carrying
	// the revision of the deletion.
	Object Object
	// OldLabels and OldFields are those before the change; nil for Added.
	OldLabels map[string]string
	OldFields map[string]string
	// OldJSON is the object before the change, carrying the revision of the change.
	// It is there when the change may take the object out of a selection, its labels
	// or fields being others than before: who selected it is shown this state.
	OldJSON []byte
}

// Progress tells followers how far the hub has come, so that quiet resource
// types advance too and a lost last change is noticed.
type Progress struct {
	// Through is a revision up to which every change has been published.
	Through int64
	// Floor is the oldest revision after which the hub's window is whole. A
	// resource type that Heads does not name has not changed since.
	Floor int64
	// Heads is the newest revision of each resource type that changed in the window.
	Heads map[resource.GroupResource]int64
	// Epoch is that of the revisions, as in Page.
	Epoch string
}

// ReplayRequest asks for the changes of one resource type after a revision.
type ReplayRequest struct {
	GroupResource resource.GroupResource
	After         int64
	// Limit is the largest number of changes in the answer; 0 leaves it to the hub.
	Limit int
}

// Replay is a run of changes.
type Replay struct {
	Changes []Change
	// Through is the revision up to which this run is complete: continue there.
	Through int64
	// More is true when the hub holds further changes after Through already.
	More bool
	// Epoch is that of the revisions, as in Page. A run of another epoch than what
	// the follower has seen does not continue it.
	Epoch string
}

// KeysRequest asks for the keys of one resource type.
type KeysRequest struct {
	GroupResource resource.GroupResource
	// ID is a key that the caller met on the bus and does not have; nil for none. A
	// hub that does not have it either looks for it before it answers.
	ID []byte
}

// Keys are the keys in use, oldest first: the last one seals, and the others may
// still have sealed messages that are under way.
type Keys struct {
	Keys []BusKey
}

// BusKey opens messages on the bus (services/kit/seal). It cannot make any: for that
// the hub's private key is needed too.
type BusKey struct {
	ID []byte // 8 bytes
	// Changes opens messages about the resource type, Progress those about progress.
	// Both have 32 bytes.
	Changes, Progress []byte
	// Public is the Ed25519 key that verifies the hub's signatures.
	Public []byte
	// Lifetime is how long the key may still be accepted; 0 is without an end.
	Lifetime time.Duration
}
