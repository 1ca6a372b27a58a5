// Package kit is the library that the services of the suite are built with: starting
// services alone or in one process with others (run), the connections to NATS (bus) and
// etcd (etcd), the contracts that a process offers and uses (contract), the stream of
// changes (changes) with its encryption (seal), and controllers (worker). It is a module
// of its own, so that implementations of a contract do not depend on it.
package kit
