// Package services defines the contracts between the services of Portico: one Go file per service, and
// status.go with the error type.
//
// A contract is a small interface over plain structs that can be serialized: a request
// goes in, a result comes out. There are no callbacks, no shared pointers and no
// meaning in context values. Received byte slices are read-only, because within one
// process both sides share them.
//
// Every error that a contract specifies is a *Status; any other error is a fault of the implementation or the
// transport, and becomes a Status with code 500 or 503 at the front door.
//
// This package defines types and their semantics. It does no work, holds no state and
// knows no resource types. It covers "What the service does" of the specification; each
// file names its own sections.
package services
