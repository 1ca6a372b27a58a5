// Package embedded is a NATS server inside the process, reached without a port:
// the bus of an installation that is one process. It decides the server's limits
// and nothing about what travels on it. It serves "Watch procedure" of the
// specification.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// maxPayload holds any object that etcd holds, together with what it replaced.
	maxPayload = 8 << 20
	// maxPending is how far a connection may lag before the server cuts it.
	maxPending = 256 << 20
	// startTimeout bounds the start of the server.
	startTimeout = 10 * time.Second
)

// Service is the embedded server as a part of a process.
func Service() run.Service {
	return run.Service{
		Name:   "nats",
		About:  "NATS inside this process, without a port",
		Offers: []run.Dependency{bus.Conn},
		Start:  start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	s, err := server.NewServer(&server.Options{
		ServerName: "portico", DontListen: true, NoLog: true, NoSigs: true,
		MaxPayload: maxPayload, MaxPending: maxPending,
	})
	if err != nil {
		return err
	}
	s.Start()
	n.OnExit(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(startTimeout) {
		return errors.New("NATS does not start")
	}
	conn, err := bus.Connect(n, "", nats.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("connecting to the NATS of this process: %w", err)
	}
	bus.Conn.Offer(n, conn)
	return nil
}
