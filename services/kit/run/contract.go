package run

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
)

// Contract is a named thing of type T that one service offers and others use:
// the implementation in this process when there is one, else a client of the one
// that flags name. It is an immutable value, declared once beside its transport.
type Contract[T any] struct {
	Name string
	// Flags registers how to reach it elsewhere; nil when it has to be in this process.
	Flags func(fs *pflag.FlagSet)
	// Dial connects to it elsewhere, by those flags. It must not wait for the
	// other side: starting order is free.
	Dial func(ctx context.Context, n *Node) (T, error)
	// Serve puts an implementation on this process's gRPC server; nil when it is
	// not carried by gRPC.
	Serve func(s grpc.ServiceRegistrar, impl T)
}

// Offer makes impl the implementation for this process and, when the process
// listens, for others. It is called from Service.Start, once.
func (c *Contract[T]) Offer(n *Node, impl T) {
	n.process.offered[c.Name] = impl
	if server := n.process.transport.server; server != nil && c.remote() {
		c.Serve(server, impl)
	}
}

// Use returns the implementation offered in this process, else a client. The
// client is shared by the process and closed when it ends. It is called from
// Service.Start.
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
	n.process.offered[c.Name] = impl
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
