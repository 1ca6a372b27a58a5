package etcd

import (
	"context"
	"crypto/rand"

	"google.golang.org/grpc/metadata"
)

// OwnStream returns a context for one watch, and for asking how far that watch
// has come. etcd answers all watches of a stream at once: not while one of them
// lags, and also one that was opened after the question and has seen nothing yet.
// The client lets watches with equal metadata share a stream, so that a watch
// whose progress counts needs metadata of its own.
func OwnStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "portico-watch", rand.Text())
}
