package services

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"

	"github.com/portico-platform/portico/services/resource"
)

// Store keeps the state of the API in etcd (sections "Persistence" and "Read
// consistency"). It holds bytes and metadata and knows no resource types. Every
// replica mirrors etcd in memory and answers reads from there; writes are one
// etcd transaction each, so that one revision holds one change.
//
// It may be called by the front door, authn, authz and admission; only the front
// door may write, but for what Callers says about quotas.
//
// A write is applied at most once, and its error says what is known of it. A 4xx
// Status, and Unavailable (503), mean that it was not applied and never will be.
// OutcomeUnknown (504) means that neither the write nor its absence could be
// confirmed in time. Cancelling ctx does not make the outcome unknown: the store
// then still finds out, for a few seconds at most.
type Store interface {
	Reader

	// Create stores a new object. AlreadyExists (409) when the key is taken;
	// Conflict (409) when r.Source is not what is stored; RequestEntityTooLarge (413)
	// when etcd cannot hold it, InsufficientStorage (507) when it has no room for
	// anything; then nothing is stored.
	Create(ctx context.Context, r CreateRequest) (Object, error)

	// Update replaces an object if its revision still is r.Revision. NotFound (404)
	// when it is gone, Conflict (409) when it has changed, RequestEntityTooLarge
	// (413) and InsufficientStorage (507) as for Create.
	Update(ctx context.Context, r UpdateRequest) (Object, error)

	// Delete removes an object and returns its last state, with the revision of
	// the deletion. NotFound (404) when it is gone, Conflict (409) when a
	// precondition does not hold.
	Delete(ctx context.Context, r DeleteRequest) (Object, error)
}

// Reader is the reading half of a Store.
type Reader interface {
	// Get returns one object. NotFound (404) when there is none, FutureRevision
	// (504) when r.Read asks for a revision that is not reached in time.
	Get(ctx context.Context, r GetRequest) (Object, error)

	// List returns one page of a collection in the order of namespace and name.
	// A whole collection is read page by page: the first page fixes the revision,
	// and the following ones ask for Exact at that revision, after Page.Next.
	// Expired (410) when that revision is no longer held, FutureRevision (504) as
	// for Get.
	List(ctx context.Context, r ListRequest) (Page, error)

	// Revision returns the newest revision of etcd, read linearizably: every
	// write that was acknowledged before the call is at or below it.
	Revision(ctx context.Context) (int64, error)
}

// ReadMode says how fresh a read must be (section "Read consistency").
type ReadMode uint8

const (
	MostRecent   ReadMode = iota // linearizable
	AnyRevision                  // whatever is at hand
	NotOlderThan                 // at least Read.Revision
	Exact                        // exactly Read.Revision; List only
)

// Read is the freshness of one read; the zero value is MostRecent.
type Read struct {
	Mode     ReadMode
	Revision int64
}

// Object is a stored object.
type Object struct {
	Key      resource.Key
	Revision int64  // the revision of its last modification
	UID      string // metadata.uid
	// JSON is the object in its storage version, with metadata.resourceVersion
	// in place: ready for the wire. Read-only.
	JSON []byte
	// Labels and Fields are what selectors are evaluated on. Fields holds the
	// selectable fields of the type except metadata.name and metadata.namespace,
	// which the key holds. Read-only.
	Labels map[string]string
	Fields map[string]string
}

// Content is what a write stores.
type Content struct {
	// JSON is the whole object in its storage version, one JSON object without
	// metadata.resourceVersion and with a non-empty metadata.
	JSON   []byte
	UID    string
	Labels map[string]string
	Fields map[string]string
}

// GetRequest names one object. Read.Mode Exact is not allowed.
type GetRequest struct {
	Key  resource.Key
	Read Read
}

// ListRequest names one page of a collection.
type ListRequest struct {
	GroupResource resource.GroupResource
	Namespace     string // empty: all namespaces, or a cluster-scoped type
	Read          Read
	// After is Page.Next of the page before; empty for the first page.
	After string
	// Limit is the largest number of objects in the page; 0 leaves it to the
	// store, which then chooses a size that bounds memory.
	Limit int
	// LabelSelector and FieldSelector are in the syntax of the API and already
	// checked by the caller; BadRequest (400) when they do not parse.
	LabelSelector string
	FieldSelector string
}

// Page is a part of a collection at one revision.
type Page struct {
	Revision int64
	Objects  []Object
	// Next is where the following page starts; empty when this is the last one.
	Next string
	// Remaining counts the objects after this page; -1 when that is not known
	// (with selectors, or from history).
	Remaining int64
	// Epoch names the unbroken history that Revision belongs to; empty when the
	// store does not know. It changes when etcd is restored from a backup: then
	// what was read before says nothing about what is.
	Epoch string
}

// Following returns the request for the page after this one, which r asked for.
func (p Page) Following(r ListRequest) ListRequest {
	r.Read, r.After = Read{Mode: Exact, Revision: p.Revision}, p.Next
	return r
}

// Attempt identifies one write over all calls that are made for it. The zero value
// is a write that is asked for once; then the store, or the client that carries the
// request to it, chooses the ID.
type Attempt struct {
	// ID is unique to the write, as NewWriteID makes them.
	ID string
	// Repeated says that an earlier call with this ID may have reached a store, and
	// that its answer was lost. The store then does not write. It answers what the
	// earlier call has done, or Unavailable (503) if it has done nothing; after that
	// the earlier call cannot take effect any more.
	Repeated bool
	// Since is a revision that the caller had seen before the earlier call. The store
	// searches the history after it.
	Since int64
}

// NewWriteID returns an ID for an Attempt: 16 characters, 96 random bits.
func NewWriteID() string {
	var id [12]byte
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint32(id[8:], rand.Uint32())
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// CreateRequest stores a new object.
type CreateRequest struct {
	Key     resource.Key
	Content Content
	// Source, if set, is the object that this one is a copy of. It must be stored at
	// its revision at the very moment of the creation.
	Source  *Source
	Attempt Attempt
}

// Source names a revision of an object that is copied to another key. Both fields
// are required.
type Source struct {
	Key      resource.Key
	Revision int64
}

// UpdateRequest replaces an object. Revision is required.
type UpdateRequest struct {
	Key      resource.Key
	Revision int64
	Content  Content
	Attempt  Attempt
}

// DeleteRequest removes an object. Revision and UID are preconditions; zero
// values mean any.
type DeleteRequest struct {
	Key      resource.Key
	Revision int64
	UID      string
	Attempt  Attempt
}
