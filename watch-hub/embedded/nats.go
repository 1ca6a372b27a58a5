// Package embedded runs a NATS server inside the process, without a port: the bus of a
// single-process installation. It serves "Watch procedure" of the specification.
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
	// maxPayload is enough for any object that fits into etcd, with its previous state.
	maxPayload = 8 << 20
	// maxPending is the maximum number of pending bytes of a connection. The server
	// closes slower ones.
	maxPending = 256 << 20
	// startTimeout bounds the start of the server.
	startTimeout = 10 * time.Second
)

// Service returns the embedded server as a service of the process.
func Service() run.Service {
	return run.Service{
		Name:   "nats",
		About:  "runs NATS in this process, without a port",
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
		return errors.New("NATS did not start")
	}
	conn, err := bus.Connect(n, "", nats.InProcessServer(bus.NewLocal(s)))
	if err != nil {
		return fmt.Errorf("connecting to the embedded NATS: %w", err)
	}
	bus.Conn.Offer(n, conn)
	return nil
}
