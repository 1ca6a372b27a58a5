// Package wire decides in which form requests and responses travel: which one a
// client is given (Negotiate), how bodies are read (Decode, DeleteOptions) and
// how objects, lists, watch events and Status errors are written (Encoder,
// WriteStatus). It serves "Content negotiation", "Table representation",
// "Protobuf envelope", "List envelope" and "Watch event" of the specification.
//
// What is stored is already the JSON of the wire, so the JSON forms copy bytes
// and never parse them. Tables and Protobuf are made from the same bytes, each in
// one scan. What is small and asked for by many is kept while hot, by object,
// revision and form: the cells of rows and the messages of objects. A list is
// written while it is read; only Protobuf, whose envelope starts with the size of
// the whole, holds the messages of its items until the end.
//
// A request goes through one Codec, of which a front door has one:
//
//	form, err := codec.Negotiate(r, t, wire.List)   // 406 when nothing fits
//	list := codec.Encoder(form, t).List(w)
//	list.Begin(meta); list.Item(object) ...; list.End()
//
// The rooms below: rawjson reads single values in place, table makes cells,
// protobuf makes messages, compression wraps large responses.
//
// This package never converts between versions, validates against a schema,
// reads the store or decides on a status code other than 400, 406 and 415.
package wire
