package breaker

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services/rpc/window"
)

const (
	// probePause is the interval of health checks, and probeWait their timeout. A running
	// process responds at once.
	probePause = 500 * time.Millisecond
	probeWait  = 2 * time.Second
)

// probe checks the health of the peer of a connection over a separate connection, and
// closes the probed one if there is no response, so that its calls can use another
// replica. gRPC's own keepalive takes three times as long.
func (b *Breaker) probe(c *watched, address string) {
	conn, err := grpc.NewClient("passthrough:///"+address, append(window.Client(),
		grpc.WithTransportCredentials(b.config.Credentials.Clone()), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0))...)
	if err != nil {
		return // gRPC's own keepalive remains
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

// answers reports whether the peer responds at all. The check is repeated if this process
// was suspended.
func answers(c *watched, health healthpb.HealthClient) bool {
	for {
		started := time.Now()
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
		if time.Since(started) < 2*probeWait {
			return false
		}
	}
}
