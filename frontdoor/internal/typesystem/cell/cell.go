// Package cell has what functions that compute cells of Tables need (section "Table
// representation" of the specification): the object as JSON, and readers of values in it.
// The functions of single kinds are below package kinds; package table builds the rows.
package cell

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Func returns the value of a cell: nil, a string, an int64, a json.RawMessage, or a
// time.Time whose age is shown.
type Func func(*Object) any

// RowFunc returns the conditions of a row as a JSON list; "" for none.
type RowFunc func(*Object) string

// Object is an object with an index of its main parts, built in one scan.
type Object struct {
	rawjson.Value
	Top, Metadata, Spec, Status rawjson.Index

	// Memo is a value that one function caches for others of the same object; Open resets
	// it to nil.
	Memo  any
	Names vocabulary.Vocabulary
}

// Open replaces the object by another one, reusing the memory of the indexes.
func (o *Object) Open(objectJSON []byte) {
	o.Value, o.Memo = objectJSON, nil
	o.Metadata, o.Spec, o.Status = o.Metadata[:0], o.Spec[:0], o.Status[:0]
	o.Top = o.Value.Index(o.Top, o.part)
}

// part returns the index that receives the members of a part; nil for parts without an
// index.
func (o *Object) part(key rawjson.Value) *rawjson.Index {
	switch string(key) {
	case `"metadata"`:
		return &o.Metadata
	case `"spec"`:
		return &o.Spec
	case `"status"`:
		return &o.Status
	}
	return nil
}

// Get returns the value at a path of member names.
func (o *Object) Get(name string, path ...string) rawjson.Value {
	return o.Top.Get(name, path...)
}
