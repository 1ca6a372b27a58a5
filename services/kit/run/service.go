// Package run is the kit that every service of the suite is started with: how
// services are declared as values, find each other in one process or over the
// network, take flags, log, report health and stop in order.
//
// It decides composition and the life of a process. It never knows what a
// service does. It serves "What the
// service does" of the specification.
package run

import (
	"context"

	"github.com/spf13/pflag"
)

// Service is one service of the suite, as a value.
type Service struct {
	// Name is the field's word for it, as in --help, logs and certificates.
	Name string
	// About is one line for --help.
	About string
	// Offers are the contracts that Start offers.
	Offers []Dependency
	// Needs are the contracts that Start uses. What no service of the process
	// offers is reached by the flags of the contract.
	Needs []Dependency
	// Flags registers the service's own flags; nil when it has none. Services of
	// one process may register the same flag, alike, and share it: so values are
	// read from Node.Flags.
	Flags func(fs *pflag.FlagSet)
	// Start returns when the service is ready. What goes on after that runs in
	// Node.Go. ctx is for starting only: it ends when Start has returned or
	// starting is given up.
	Start func(ctx context.Context, n *Node) error
}

// Dependency is a Contract of any type.
type Dependency interface {
	name() string
	register(fs *pflag.FlagSet)
	remote() bool // by gRPC, to and from other processes
}

// App is a process: a name and the services in it, in the order of their start.
type App struct {
	Name     string
	About    string // a paragraph for --help
	Services []Service
}
