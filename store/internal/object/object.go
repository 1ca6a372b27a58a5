// Package object encodes objects of the store's contract as values in etcd, and decodes
// them. The value has no resourceVersion, which decoding adds from the revision. It may be
// encrypted. The package does no I/O but for the encryption: its file, and KMS plugins.
package object

import (
	"errors"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/etcd/decoded"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/stored"
	"github.com/portico-platform/portico/services/tree"
)

// Codec encodes and decodes. The zero value does not encrypt.
type Codec struct {
	Values *atrest.Values
}

// Write is an object to be written to etcd.
type Write struct {
	Path    string // its key in etcd
	Value   string // its value in etcd
	key     resource.Key
	content services.Content
	at      int
}

// Mark is what a record says about the write that stored it.
type Mark struct {
	ID    string
	Trace []byte // as in services.Change
}

// New prepares a write. BadRequest (400) if the key or the content cannot be stored,
// Unavailable (503) if it cannot be encrypted at present.
func (c Codec) New(key resource.Key, content services.Content, by Mark) (Write, error) {
	if err := CheckKey(key); err != nil {
		return Write{}, err
	}
	at, err := stored.Offset(key, content.JSON)
	if err != nil { // it could not be read again
		return Write{}, services.BadRequest("%s: the object cannot be stored: %v", key, err)
	}
	value := resource.EncodeRecord(resource.Record{
		UID: content.UID, Labels: content.Labels, Fields: content.Fields, At: at, JSON: content.JSON, Write: by.ID, Trace: by.Trace,
	})
	sealed, err := c.Values.Seal(key.Path(), value)
	if err != nil {
		return Write{}, services.Unavailable("%s: %v", key, err)
	}
	return Write{Path: key.Path(), Value: string(sealed), key: key, content: content, at: at}, nil
}

// Stored returns the object that etcd has stored at a revision.
func (w Write) Stored(revision int64) services.Object {
	return services.Object{
		Key: w.key, Revision: revision, UID: w.content.UID,
		JSON:   tree.InsertResourceVersion(w.content.JSON, w.at, revision),
		Labels: w.content.Labels, Fields: w.content.Fields,
	}
}

// CheckKey returns BadRequest (400) for keys whose path would be invalid or equal to that
// of another object.
func CheckKey(key resource.Key) error {
	if err := key.Check(); err != nil {
		return services.BadRequest("%v", err)
	}
	return nil
}

// Decode returns the object of a path and value in etcd. revision is that of the value or
// of its deletion. If the value cannot be read, the object says so in Unreadable. The error means that
// the path is not that of an object.
func (c Codec) Decode(path string, value []byte, revision int64) (services.Object, error) {
	key, err := resource.ParsePath(path)
	if err != nil {
		return services.Object{}, err
	}
	o, _, err := decoded.Object(c.Values, decoded.Value{Path: path, Key: key, Bytes: value, Revision: revision})
	if err != nil {
		return services.Object{Key: key, Revision: revision, Unreadable: reason(err)}, nil
	}
	return o, nil
}

// reason returns why a value cannot be read, without the key.
func reason(err error) string {
	var unreadable *decoded.Unreadable
	if errors.As(err, &unreadable) {
		err = unreadable.Reason
	}
	return err.Error()
}

// Unreadable reports whether an object has only its key and revision, because its value cannot be
// read.
func Unreadable(o *services.Object) bool { return o.Unreadable != "" }

// WriteID returns the ID of the write that stored a value; empty if it is unknown.
func (c Codec) WriteID(path string, value []byte) string {
	plain, err := c.Values.Open(path, value)
	if err != nil {
		return ""
	}
	return resource.RecordWrite(plain)
}
