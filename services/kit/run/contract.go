package run

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
)

// Contract is a named interface or value of type T that one service offers and others use: the implementation
// in this process if there is one, else a client for another process. It is immutable and declared once, next
// to its transport.
type Contract[T any] struct {
	Name string
	// Flags registers the flags for reaching it in another process; nil if it must be in
	// this process.
	Flags func(fs *pflag.FlagSet)
	// Dial connects to it in another process, by those flags. It must not wait for the
	// other process: services may start in any order.
	Dial func(ctx context.Context, n *Node) (T, error)
	// Serve registers an implementation with this process's gRPC server; nil if it is not
	// available over gRPC.
	Serve func(s grpc.ServiceRegistrar, impl T)
}

// Offer registers impl as the implementation for this process and, if the process has
// --rpc-address, for others. It is called once, from Service.Start.
func (c *Contract[T]) Offer(n *Node, impl T) {
	n.process.offered[c.Name] = impl
	if server := n.process.transport.server; server != nil && c.remote() {
		c.Serve(server, impl)
	}
}

// Local reports whether the implementation is in this process. It is called from
// Service.Start.
func (c *Contract[T]) Local(n *Node) bool {
	_, offered := n.process.offered[c.Name]
	return offered && !n.process.dialed[c.Name]
}

// Use returns the implementation offered in this process, else a client, which the process
// shares and closes on exit. It is called from Service.Start.
func (c *Contract[T]) Use(ctx context.Context, n *Node) (T, error) {
	if impl, ok := n.process.offered[c.Name]; ok {
		return impl.(T), nil
	}
	var none T
	if c.Dial == nil {
		return none, fmt.Errorf("%s is not part of this process and cannot be reached from outside", c.Name)
	}
	impl, err := c.Dial(ctx, n)
	if err != nil {
		return none, fmt.Errorf("reaching %s: %w", c.Name, err)
	}
	n.process.offered[c.Name], n.process.dialed[c.Name] = impl, true
	return impl, nil
}

func (c *Contract[T]) name() string { return c.Name }

func (c *Contract[T]) remote() bool { return c.Serve != nil }

func (c *Contract[T]) register(fs *pflag.FlagSet) {
	if c.Flags != nil {
		c.Flags(fs)
	}
}

var _ Dependency = (*Contract[int])(nil)
