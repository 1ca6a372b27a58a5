// Package cell is what the cells of Tables are computed with (section "Table
// representation" of the specification): the object in its JSON, and readers of it. The
// functions of single kinds are below package kinds; package table makes rows of them.
package cell

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Func returns what a cell shows: nil, a string, an int64, a json.RawMessage or the
// time.Time since when.
type Func func(*Object) any

// RowFunc returns the conditions of a row, a JSON list; "" when there are none.
type RowFunc func(*Object) string

// Object is an object with its parts at hand, all found in one scan.
type Object struct {
	rawjson.Value
	Top, Metadata, Spec, Status rawjson.Index

	// Memo is what a function keeps for others of the same object; nil at first.
	Memo  any
	Names vocabulary.Vocabulary
}

// Open takes the JSON of an object in place of the one before.
func (o *Object) Open(objectJSON []byte) {
	o.Value, o.Memo = objectJSON, nil
	o.Metadata, o.Spec, o.Status = o.Metadata[:0], o.Spec[:0], o.Status[:0]
	o.Top = o.Value.Index(o.Top, o.part)
}

// part returns where the members of a part are kept.
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

// Get returns the value that a path of member names leads to.
func (o *Object) Get(name string, path ...string) rawjson.Value {
	return o.Top.Get(name, path...)
}
