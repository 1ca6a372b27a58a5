package services

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"

	"github.com/portico-platform/portico/services/resource"
)

// Store keeps the state of the API in etcd (sections "Persistence" and "Read
// consistency"). It holds content and metadata and knows no resource types. Every
// replica mirrors etcd in memory and serves reads from there; each write is one etcd
// transaction, so that one revision holds one change.
//
// The front door, authn, authz and admission may call it; only the front door may
// write, except for what Callers allows admission for quotas.
//
// A write is applied at most once. A 4xx Status, and Unavailable (503), mean that it was not applied and never
// will be. OutcomeUnknown (504) means that neither the write nor its absence could be confirmed in time.
// Cancelling ctx does not make the outcome unknown: the store still determines it, within a few seconds.
type Store interface {
	Reader

	// Create stores a new object. AlreadyExists (409) if the key is taken; Conflict (409), about the first of
	// them, if one of r.Requires does not match the stored object; RequestEntityTooLarge (413) if it exceeds
	// etcd's limit; InsufficientStorage (507) if etcd has no space for writes. After any of these, nothing is
	// stored.
	Create(ctx context.Context, r CreateRequest) (Object, error)

	// Update replaces an object if its revision is still r.Revision. NotFound (404) if
	// it is gone, Conflict (409) if it has changed; r.Requires, RequestEntityTooLarge
	// (413) and InsufficientStorage (507) as for Create.
	Update(ctx context.Context, r UpdateRequest) (Object, error)

	// Delete removes an object and returns its last state, with the revision of the
	// deletion. NotFound (404) if it is gone, Conflict (409) if a precondition fails. One
	// that cannot be read is removed only at the revision that Unreadable (500) names, and
	// then returned without content.
	Delete(ctx context.Context, r DeleteRequest) (Object, error)
}

// Reader is the read-only part of a Store.
type Reader interface {
	// Get returns one object. NotFound (404) if there is none, FutureRevision (504) if
	// the revision that r.Read requires is not reached in time, Unreadable (500) if its
	// value in etcd cannot be read.
	Get(ctx context.Context, r GetRequest) (Object, error)

	// List returns one page of a collection in the order of namespace and name. A whole
	// collection is read page by page: the first page fixes the revision, and the
	// following ones request Exact at that revision, after Page.Next. Expired (410) if
	// that revision is no longer available, FutureRevision (504) as for Get, Unreadable
	// (500) for the first object that cannot be read unless r.WithUnreadable.
	List(ctx context.Context, r ListRequest) (Page, error)

	// Revision returns the newest revision of the etcd that stores a type, read linearizably: every write of
	// the type that was acknowledged before the call is at or below it. The zero type means all types in the
	// main etcd.
	Revision(ctx context.Context, of resource.GroupResource) (int64, error)
}

// HeadReader is an optional interface of a Store. It returns the last change of a type, so that a caller can
// check that its copy is up to date.
type HeadReader interface {
	// Heads returns the head of each type, in order.
	Heads(ctx context.Context, types []resource.GroupResource) ([]Head, error)
}

// Head describes the last change of the objects of a type.
type Head struct {
	// Changed is a revision after which no object of the type has changed, up to Revision.
	Changed int64
	// Revision is the newest one of the etcd that stores the type, as of Reader.Revision.
	Revision int64
	// Epoch is that of both revisions, as in Page.
	Epoch string
}

// ReadMode is the required freshness of a read (section "Read consistency").
type ReadMode uint8

const (
	MostRecent   ReadMode = iota // linearizable
	AnyRevision                  // whatever is in memory
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
	// Labels and Fields are matched by selectors. Fields holds the selectable fields of
	// the type except metadata.name and metadata.namespace, which are in the key.
	// Read-only.
	Labels map[string]string
	Fields map[string]string
	// Unreadable says why the stored value cannot be read; empty if it can. Such an object
	// has only its key and revision, and is returned only to those who ask for it.
	Unreadable string
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
	// After is Page.Next of the previous page; empty for the first one.
	After string
	// Limit is the maximum number of objects in the page. With 0 the store chooses a
	// size that bounds memory.
	Limit int
	// LabelSelector and FieldSelector are in the syntax of the API and validated by the
	// caller; BadRequest (400) if they do not parse.
	LabelSelector string
	FieldSelector string
	// WithUnreadable returns objects that cannot be read too, with Object.Unreadable,
	// whatever the selectors. A store of an earlier release returns an error instead.
	// Without GroupResource, these of all types are returned, and nothing else; no page
	// follows.
	WithUnreadable bool
	// FindEnd requests Page.End.
	FindEnd bool
}

// Page is a part of a collection at one revision.
type Page struct {
	Revision int64
	Objects  []Object
	// Next is where the following page starts; empty if this is the last one.
	Next string
	// Remaining is the number of objects after this page; -1 if unknown (with
	// selectors, or from history).
	Remaining int64
	// Epoch identifies the unbroken history that Revision belongs to; empty if unknown.
	// It changes when etcd is restored from a backup, which invalidates everything read
	// before.
	Epoch string
	// End is what Next would be if the page had all objects of Limit: the store ends pages earlier to bound
	// memory. The caller may read up to there with further requests. nil if that is unknown, and
	// for a page that ends there itself.
	End *string
}

// Following returns the request for the next page of the list of r.
func (p Page) Following(r ListRequest) ListRequest {
	r.Read, r.After = Read{Mode: Exact, Revision: p.Revision}, p.Next
	return r
}

// Attempt identifies one write across all calls for it. The zero value is for a write
// that is sent once; the store, or its client, then chooses the ID.
type Attempt struct {
	// ID is unique to the write. NewWriteID generates one.
	ID string
	// Repeated means that an earlier call with this ID may have reached a store, and
	// that its response was lost. The store then does not write. It returns the outcome
	// of the earlier call, or Unavailable (503) if that was not applied; after that the
	// earlier call can no longer take effect.
	Repeated bool
	// Since is a revision that the caller had seen before the earlier call, after which the store searches the history.
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
	// Requires, at most MaxRequirements, must hold in the transaction of the create: of
	// a copy, that its source is unchanged; of a Service, that its addresses are
	// claimed.
	Requires []Requirement
	Attempt  Attempt
}

// MaxRequirements is the maximum number of requirements of one write: etcd bounds the
// conditions of a transaction.
const MaxRequirements = 64

// Requirement names another object and the revision at which it must be stored. Both
// fields are required.
type Requirement struct {
	Key      resource.Key
	Revision int64
}

// UpdateRequest replaces an object. Revision is required.
type UpdateRequest struct {
	Key      resource.Key
	Revision int64
	Content  Content
	// Requires is as in CreateRequest.
	Requires []Requirement
	Attempt  Attempt
	// Unchanged means that Content equals the object stored at Revision. The store then writes only if the
	// object is not encrypted with the current key. Otherwise it returns the object at Revision, without a
	// check that this is the newest.
	Unchanged bool
}

// DeleteRequest removes an object. Revision and UID are preconditions; zero
// values mean any.
type DeleteRequest struct {
	Key      resource.Key
	Revision int64
	UID      string
	Attempt  Attempt
}
