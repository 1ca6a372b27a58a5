// Package run starts and stops the services of a process. Services are declared as values,
// find each other in one process or over the network, and share flags, logs, health checks
// and metrics.
//
// It knows nothing about what a service does. It serves "What the service does" of the
// specification.
package run

import (
	"context"

	"github.com/spf13/pflag"
)

// Service is one service of the suite, as a value.
type Service struct {
	// Name is the name in --help, logs and certificates.
	Name string
	// About is one line for --help.
	About string
	// Offers are the contracts that Start offers.
	Offers []Dependency
	// Needs are the contracts that Start uses. Those that no service of the process offers
	// are reached by the flags of the contract.
	Needs []Dependency
	// Flags registers the service's own flags; nil if it has none. Services of one process
	// may register the same flag with the same type and default. Values are read from
	// Node.Flags.
	Flags func(fs *pflag.FlagSet)
	// Prepare, if there is one, is called for all services before the first Start, with the flags, the
	// vocabulary, the release and the feature gates, to begin work that needs no other service. It must not wait; errors are
	// for Start.
	Prepare func(n *Node)
	// Start returns when the service is ready. Background loops are started with Node.Go.
	// ctx is for starting only: it ends when Start returns or starting is canceled.
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
	// Defaults sets the values of flags that were not given, by what other flags say; nil for nothing. It is called
	// before anything starts, and its error ends the start.
	Defaults func(flags *pflag.FlagSet) error
	starting func(*Running) // called before the first service starts; nil for nothing
}
