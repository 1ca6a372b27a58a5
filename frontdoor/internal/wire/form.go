package wire

// Media is how bytes are laid out.
type Media uint8

const (
	JSON Media = iota
	YAML
	Protobuf
)

// As is what an object is shown as.
type As uint8

const (
	Whole   As = iota
	Table      // rows and columns, built here
	Partial    // PartialObjectMetadata: kind, apiVersion and metadata
)

// Include is what a row of a Table carries beside its cells.
type Include uint8

const (
	IncludeMetadata Include = iota // the default
	IncludeNone
	IncludeObject
)

// What is the kind of response that a form is negotiated for.
type What uint8

const (
	Object What = iota // one object, read or written
	List
	Watch
)

// Form is how a response travels. The zero value is compact JSON.
type Form struct {
	ContentType string // of the response
	Media       Media
	As          As
	MetaVersion string // of the meta group, for Table and Partial
	Include     Include
	Pretty      bool // indented, JSON only
}
