// Package kit holds what the services of the suite are built with: the run kit that
// starts a service alone or in one process with others (run), the connections to NATS
// (bus) and etcd (etcd), the contracts as a process offers and uses them (contract), the
// stream of changes (changes) with its encryption (seal), and the frame of controllers
// (worker). It is a module of its own: who only implements a contract needs none of it.
package kit
