// Package contracttest holds the conformance suite of every contract. A suite checks only
// what the contract specifies. Remote connects to an implementation over gRPC with package
// rpc; package kittest also runs the suites with mutual TLS.
package contracttest
