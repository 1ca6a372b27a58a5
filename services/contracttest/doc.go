// Package contracttest holds the conformance suite of every contract. A suite checks
// what the contract says and nothing that only one implementation does. Remote
// carries an implementation over gRPC as package rpc does it; kittest of the run kit
// runs the suites with mutual TLS too.
package contracttest
