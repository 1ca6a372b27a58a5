// Package services holds the contracts between the services of Portico: one Go
// file per service, mostly comment, and status.go, the one error type.
//
// A contract is a small interface over plain structs that a network can carry:
// a request goes in, a result comes out. There are no callbacks, no shared
// pointers and no meaning in context values. Whoever receives a byte slice must
// treat it as read-only, because in one process both sides hold the same one.
//
// Every error that a contract returns on purpose is a *Status; anything else is
// a fault of the implementation or of the transport, and becomes a Status with
// code 500 or 503 at the edge.
//
// This package decides shapes and meanings. It never does work, holds no state
// and knows no resource type. It covers "What the service does" of the
// specification; each file names its own sections.
package services
