// Package window sets the flow control windows of gRPC connections.
//
// By default gRPC measures each connection to adapt them: on an idle connection every
// message is answered with a window update and a ping, which the sender answers again. That
// is four wakes for a call of two messages, and more system calls than the call itself.
package window

import "google.golang.org/grpc"

const (
	// perStream bounds what a peer may send of a stream before it is read. A larger message
	// gets the space that it needs when its reader waits for it.
	perStream = 1 << 20
	// perConnection bounds the bytes in flight on a connection: 1 GB/s at 16 ms.
	perConnection = 16 << 20
)

// Client returns the options of a connection.
func Client() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithStaticStreamWindowSize(perStream), grpc.WithStaticConnWindowSize(perConnection)}
}

// Server returns the options of a server.
func Server() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.StaticStreamWindowSize(perStream), grpc.StaticConnWindowSize(perConnection)}
}
