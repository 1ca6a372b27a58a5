// Package rpc is the gRPC transport of the contracts: portico.proto, and one Go file per contract with server
// and client. RegisterX registers an implementation with a gRPC server, NewX returns a client over a
// connection; listening, connecting and authentication are up to the caller, as in services/kit/run. The
// package converts messages, and checks that a response is valid under the contract. Errors are transported as
// whole Status values. EncodeChange and EncodeProgress encode the messages on the bus. It serves "What the
// service does" of the specification.
package rpc
