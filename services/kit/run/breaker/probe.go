package breaker

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// probePause is the pause between two questions to a peer, and probeWait how long
	// it has to answer. Any process that runs answers at once.
	probePause = 500 * time.Millisecond
	probeWait  = 2 * time.Second
)

// probe asks the peer of a connection whether it is there, over a connection of its
// own, and closes the other one when there is no answer: what waits on it can go
// elsewhere then. gRPC's own probes take three times as long.
func (b *Breaker) probe(c *watched, address string) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(b.config.Credentials.Clone()),
		grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0))
	if err != nil {
		return // gRPC's own probes are left
	}
	defer conn.Close()
	health := healthpb.NewHealthClient(conn)
	ticks := time.NewTicker(probePause)
	defer ticks.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-ticks.C:
			if !answers(c, health) {
				b.suspect.Store(true)
				_ = c.Close()
				return
			}
		}
	}
}

// answers reports whether the peer says anything at all. A question is repeated when
// it is this process that was not there.
func answers(c *watched, health healthpb.HealthClient) bool {
	for {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), probeWait)
		stop := make(chan struct{})
		go func() {
			select {
			case <-c.closed:
				cancel()
			case <-stop:
			}
		}()
		_, err := health.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		close(stop)
		cancel()
		if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Unavailable {
			return true
		}
		if time.Since(asked) < 2*probeWait {
			return false
		}
	}
}
