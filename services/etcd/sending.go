package etcd

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// Sending knows whether a request has left this process.
type Sending struct{ failed bool }

// Failed reports whether the request has failed and etcd has certainly seen nothing
// of it: there was no connection to send it over.
func (s *Sending) Failed() bool { return s.failed }

type sendingKey struct{}

// Track returns a context for one request, and what knows of its sending. Requests to
// an etcd in this process always count as sent.
func Track(ctx context.Context) (*Sending, context.Context) {
	s := new(Sending)
	return s, context.WithValue(ctx, sendingKey{}, s)
}

// tracked notes for Track whether a request got a connection.
func tracked() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		s, ok := ctx.Value(sendingKey{}).(*Sending)
		if !ok {
			return call(ctx, method, request, reply, conn, options...)
		}
		var p peer.Peer
		err := call(ctx, method, request, reply, conn, append(options, grpc.Peer(&p))...)
		s.failed = err != nil && p.Addr == nil
		return err
	}
}
