// Package wire encodes responses and decodes requests: it negotiates the form of a
// response (Negotiate), decodes bodies (Decode, DeleteOptions), and encodes objects, lists,
// watch events and Status errors (Encoder, WriteStatus). It serves "Content negotiation",
// "Table representation", "Protobuf envelope", "List envelope" and "Watch event" of the
// specification.
//
// Objects are stored as the JSON of responses, so JSON forms copy bytes without parsing
// them. Tables and Protobuf are encoded from the same bytes, each in one scan. Cells of rows
// and messages of objects are cached by object, revision and form when they are requested
// repeatedly. A list is written while it is read; only Protobuf, whose envelope starts with
// the size of the whole, holds the messages of its items until the end, or requires the items of a
// large list again.
//
// A front door has one Codec for all requests:
//
//	form, err := codec.Negotiate(r, t, wire.List)   // 406 if no form is possible
//	list := codec.Encoder(form, t).List(w)
//	list.Begin(meta); list.Item(object) ...; list.Again(); list.End()
//
// Packages: table computes cells, protobuf encodes messages; both read JSON by package
// rawjson. layout converts JSON to YAML and, by package cbor, to CBOR.
//
// This package never converts between versions, validates against a schema, reads the store
// or decides on a status code other than 400, 406 and 415.
package wire
