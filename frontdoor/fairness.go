package frontdoor

import (
	"context"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/backends"
	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/flowcontrol"
	"github.com/portico-platform/portico/services/kit/run"
)

// followFairness keeps FlowSchemas and PriorityLevelConfigurations, and what follows from them. It
// returns once all are known.
func (d *door) followFairness(ctx context.Context, n *run.Node, b backends.Services) error {
	if d.access.Shares == nil {
		return nil
	}
	objects, err := bootstrap.Fairness(n.Vocabulary, n.Release)
	if err != nil {
		return err
	}
	var defaults []flowcontrol.Default
	for _, o := range objects {
		defaults = append(defaults, flowcontrol.Default{Object: o.Object, Mandatory: o.Mandatory, AutoUpdate: bootstrap.AutoUpdate(n.Vocabulary, n.Release)})
	}
	keeper, err := flowcontrol.New(flowcontrol.Config{Vocabulary: n.Vocabulary, Source: b.Changes, Store: b.Direct, Writes: d.writes, Engine: d.engine,
		Shares: d.access.Shares, Defaults: defaults, Log: n.Log})
	if err != nil {
		return err
	}
	n.Go("lending seats between priority levels", d.access.Shares.Run)
	n.Go("keeping FlowSchemas and PriorityLevelConfigurations", keeper.Run)
	return keeper.Ready(ctx)
}

// countReplicas divides the seats among the running front doors.
func (d *door) countReplicas(n int) {
	if d.access.Shares != nil {
		d.access.Shares.SetReplicas(n)
	}
}

// fairnessDumps returns the debug endpoints by path. They are for users who are authorized for the path.
func (d *door) fairnessDumps() map[string]http.HandlerFunc {
	dumps := map[string]http.HandlerFunc{}
	if d.access.Shares != nil {
		for name, dump := range d.access.Shares.Dumps() {
			dumps["/debug/api_priority_and_fairness/"+name] = dump
		}
	}
	return dumps
}
