package wire

import "github.com/portico-platform/portico/frontdoor/internal/wire/layout"

// Media is an encoding.
type Media uint8

const (
	JSON Media = iota
	YAML
	Protobuf
	CBOR
)

// As is a representation of an object.
type As uint8

const (
	Whole   As = iota
	Table      // meta.v1.Table
	Partial    // PartialObjectMetadata: kind, apiVersion and metadata
)

// Include selects what a row of a Table has in addition to its cells.
type Include uint8

const (
	IncludeMetadata Include = iota // the default
	IncludeNone
	IncludeObject
)

// What is the type of response that a form is negotiated for.
type What uint8

const (
	Object What = iota // one object, read or written
	List
	Watch
)

// Form is the encoding and representation of a response. The zero value is compact JSON of
// whole objects.
type Form struct {
	ContentType string // of the response
	Media       Media
	As          As
	MetaVersion string // of the meta group, for Table and Partial
	Include     Include
	Pretty      bool // indented, JSON only
}

// layout returns how a form differs from compact JSON; nil if it does not.
func (f Form) layout() layout.Layout {
	switch {
	case f.Media == YAML:
		return layout.YAML{}
	case f.Media == CBOR:
		return layout.CBOR{}
	case f.Pretty:
		return layout.Pretty{}
	}
	return nil
}
