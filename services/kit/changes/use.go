package changes

import (
	"context"

	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
)

// source is the Source of a process, created on first use.
var source = &run.Contract[Source]{Name: "changes", Dial: newSource}

// Use returns the Source of this process. A service that calls it needs
// contract.WatchHub and bus.Conn. It is called from run.Service.Start.
func Use(ctx context.Context, n *run.Node) (Source, error) { return source.Use(ctx, n) }

func newSource(ctx context.Context, n *run.Node) (Source, error) {
	hub, err := contract.WatchHub.Use(ctx, n)
	if err != nil {
		return Source{}, err
	}
	conn, err := bus.Conn.Use(ctx, n)
	if err != nil {
		return Source{}, err
	}
	return Source{Bus: conn, Hub: hub, Opener: NewOpener(hub, n.Metrics, n.Log)}, nil
}
