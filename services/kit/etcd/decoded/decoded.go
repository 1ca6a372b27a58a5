// Package decoded turns the values of etcd into objects. The store and the watch hub decode the
// same values: in one process with an embedded etcd they receive the same bytes, and share the
// object that one of them has made of them.
//
// Objects are immutable. The package does no I/O but for the encryption of values.
package decoded

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/stored"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// kept is the number of values that wait for the other reader, and keptBytes the largest of them.
	kept      = 128
	keptBytes = 32 << 10
)

// one is what was made of a value. It keeps the value, so that no other one has its address.
type one struct {
	value  []byte
	object services.Object
	trace  []byte
}

// recent has the newest values that were decoded once, each at a place that follows from its
// revision.
var recent [kept]atomic.Pointer[one]

// Value is a value of etcd at a path, which is that of the key. Revision is that of the value or of
// its deletion.
type Value struct {
	Path     string
	Key      resource.Key
	Bytes    []byte
	Revision int64
}

// Unreadable means that a value is not a readable object of its key: it cannot be decrypted, is damaged, is another
// object or in a version that this release does not know. The object is not absent.
type Unreadable struct {
	Key      resource.Key
	Revision int64
	Reason   error
}

// Error returns the message, which names the object.
func (e *Unreadable) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Reason) }

// Unwrap returns the reason, which may be atrest.Unreadable.
func (e *Unreadable) Unwrap() error { return e.Reason }

// Object returns the object in a value, and the trace of the write that stored it. The error is Unreadable.
func Object(values *atrest.Values, v Value) (services.Object, []byte, error) {
	place := &recent[uint64(v.Revision)%kept]
	if known := place.Load(); known != nil && known.is(v) {
		place.CompareAndSwap(known, nil) // both have it now
		return known.object, known.trace, nil
	}
	record, err := Record(values, v.Path, v.Bytes)
	if err == nil {
		if wrong := stored.Check(v.Key, record.JSON, record.At); wrong != nil {
			err = damaged(wrong)
		}
	}
	if err != nil {
		return services.Object{}, nil, &Unreadable{v.Key, v.Revision, err}
	}
	o := services.Object{Key: v.Key, Revision: v.Revision, UID: record.UID, JSON: tree.InsertResourceVersion(record.JSON, record.At, v.Revision),
		Labels: record.Labels, Fields: record.Fields}
	if len(v.Bytes) <= keptBytes {
		place.Store(&one{v.Bytes, o, record.Trace})
	}
	return o, record.Trace, nil
}

func (o *one) is(v Value) bool {
	return o.object.Revision == v.Revision && o.object.Key == v.Key && len(o.value) == len(v.Bytes) && unsafe.SliceData(o.value) == unsafe.SliceData(v.Bytes)
}

// Record returns the record in a value of etcd at a path, without a check of its object. The error is
// atrest.Unreadable if the value cannot be decrypted.
func Record(values *atrest.Values, path string, value []byte) (resource.Record, error) {
	plain, err := values.Open(path, value)
	if err != nil {
		return resource.Record{}, err
	}
	record, err := resource.DecodeRecord(plain)
	if err != nil {
		return record, damaged(err)
	}
	return record, nil
}

func damaged(why error) error { return fmt.Errorf("the value in etcd is damaged: %w", why) }
