// Package rpc carries the contracts over gRPC: portico.proto, and one Go file per
// contract with both ends of the wire. RegisterX puts an implementation on a gRPC
// server, NewX returns a client over a connection; listening, connecting and
// authentication belong to the caller, as in services/kit/run. The package
// translates, and checks that an answer is one that the contract allows; it decides
// nothing else. Errors cross the wire as whole Status values. EncodeChange and its
// kin do the same for the messages on the bus. It serves "What the service does" of
// the specification.
package rpc
