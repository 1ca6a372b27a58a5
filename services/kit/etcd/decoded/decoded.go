// Package decoded turns the values of etcd into objects. The store and the watch hub decode the
// same values: in one process with an embedded etcd they receive the same bytes, and share the
// object that one of them has made of them.
//
// Objects are immutable. The package does no I/O but for the encryption of values.
package decoded

import (
	"sync/atomic"
	"unsafe"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/resource"
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

// Object returns the object in a value, and the trace of the write that stored it. The error is
// atrest.Unreadable if the value cannot be decrypted.
func Object(values *atrest.Values, v Value) (services.Object, []byte, error) {
	place := &recent[uint64(v.Revision)%kept]
	if known := place.Load(); known != nil && known.is(v) {
		place.CompareAndSwap(known, nil) // both have it now
		return known.object, known.trace, nil
	}
	record, err := Record(values, v.Path, v.Bytes)
	if err != nil {
		return services.Object{}, nil, err
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

// Record returns the record in a value of etcd at a path. The error is atrest.Unreadable if the
// value cannot be decrypted.
func Record(values *atrest.Values, path string, value []byte) (resource.Record, error) {
	plain, err := values.Open(path, value)
	if err != nil {
		return resource.Record{}, err
	}
	return resource.DecodeRecord(plain)
}
