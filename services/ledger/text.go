package ledger

import (
	"bytes"
	"fmt"
	"io"
)

// Text is a kind of text that others determine, with its bounds. They are checked before the text is decoded.
type Text struct {
	// Name is the name in errors and in the table of docs/security-matrix.md.
	Name string
	// Bytes is the largest size; 0 if that is bounded elsewhere, which the table says.
	Bytes int64
	// Values is the largest number of JSON values or of Protobuf fields, Depth the deepest nesting; 0 for texts
	// that are not decoded.
	Values, Depth int
	// Weight is what one value takes at most once it is decoded, in bytes.
	Weight int64
}

// ExcessError is the error of a text that exceeds a bound.
type ExcessError struct {
	Text  Text
	What  string // such as "bytes"
	Limit int64
}

// Error implements error.
func (e *ExcessError) Error() string {
	return fmt.Sprintf("%s: more than %d %s", e.Text.Name, e.Limit, e.What)
}

// What is bounded.
const bytesOf, valuesOf, fieldsOf, levels = "bytes", "values", "fields", "levels of nesting"

// Check returns what decoding a JSON text takes, in bytes. The error is an ExcessError if the text must
// not be decoded. It allocates nothing, and the text may be invalid.
func (t Text) Check(text []byte) (weight int64, err error) {
	if t.Bytes > 0 && int64(len(text)) > t.Bytes {
		return 0, &ExcessError{t, bytesOf, t.Bytes}
	}
	if t.Values == 0 {
		return 0, nil
	}
	values, deep := scan(text, t.Values, t.Depth)
	switch {
	case deep:
		return 0, &ExcessError{t, levels, int64(t.Depth)}
	case values > t.Values:
		return 0, &ExcessError{t, valuesOf, int64(t.Values)}
	}
	return int64(len(text)) + int64(values)*t.Weight, nil
}

// CheckYAML is Check for YAML: each line and each separator may begin a value, whatever is quoted.
func (t Text) CheckYAML(text []byte) (weight int64, err error) {
	values := 1
	for _, separator := range []byte("\n,{[") {
		values += bytes.Count(text, []byte{separator})
	}
	values += bytes.Count(text, []byte("- ")) // nested in one line
	switch {
	case t.Bytes > 0 && int64(len(text)) > t.Bytes:
		return 0, &ExcessError{t, bytesOf, t.Bytes}
	case values > t.Values:
		return 0, &ExcessError{t, valuesOf, int64(t.Values)}
	}
	return int64(len(text)) + int64(values)*(t.Weight+yamlNode), nil
}

// yamlNode is what a YAML value takes before it is JSON, in bytes.
const yamlNode = 250

// Account is where the memory of an owner is counted.
type Account struct {
	Ledger *Ledger
	Owner  Owner
}

// Grow reserves n bytes in hold, or returns a FullError.
func (a Account) Grow(hold *Hold, n int64) error {
	if hold.Grow(a.Ledger, a.Owner, n) {
		return nil
	}
	return &FullError{a.Owner}
}

// firstRead is the size of a buffer before the first byte has been read.
const firstRead = 4 << 10

// Read reads a JSON text, which the caller may then decode. The buffer is charged as it grows, so that
// announcing a large text costs nothing, and at the end what decoding takes. The error is an ExcessError, a
// FullError or that of the reader.
func (a Account) Read(hold *Hold, from io.Reader, t Text) ([]byte, error) {
	size := int64(firstRead)
	if err := a.Grow(hold, size); err != nil {
		return nil, err
	}
	text := make([]byte, 0, size)
	for {
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case t.Bytes > 0 && int64(len(text)) > t.Bytes:
			return nil, &ExcessError{t, bytesOf, t.Bytes}
		case err == io.EOF: //nolint:errorlint // readers return it as it is
			weight, err := t.Check(text)
			if err != nil {
				return nil, err
			}
			return text, a.Grow(hold, weight)
		case err != nil:
			return nil, err
		}
		if len(text) < cap(text) {
			continue
		}
		if err := a.Grow(hold, int64(cap(text))); err != nil {
			return nil, err
		}
		text = append(make([]byte, 0, 2*cap(text)), text...)
	}
}
