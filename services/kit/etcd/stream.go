package etcd

import (
	"context"
	"crypto/rand"

	"google.golang.org/grpc/metadata"
)

// OwnStream returns a context for a watch that uses progress requests. etcd responds for
// all watches of a stream at once: it delays the response while one of them lags, and
// includes watches that were created after the request. The client shares a stream between
// watches with equal metadata, so the context has unique metadata.
func OwnStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "portico-watch", rand.Text())
}
