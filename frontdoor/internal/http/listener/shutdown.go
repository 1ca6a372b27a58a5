package listener

import (
	"context"
	"net/http"
	"time"
)

// goawayEvery is how often a stopping server asks HTTP/2 clients to close their connections.
const goawayEvery = 250 * time.Millisecond

// Shutdown closes a server's connections as soon as they have no requests, and all of them when
// timeout has passed or ctx ends. One call of Shutdown is not enough: it never ends a connection
// whose TLS handshake ends after the call began.
func Shutdown(ctx context.Context, server *http.Server, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for ctx.Err() == nil {
		round, end := context.WithTimeout(ctx, goawayEvery)
		err := server.Shutdown(round)
		end()
		if err == nil {
			return
		}
	}
	_ = server.Close()
}
