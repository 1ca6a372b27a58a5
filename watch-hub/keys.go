package watchhub

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/changes"
	"github.com/portico-platform/portico/services/run"
)

// Keys implements services.WatchHub.
func (h *Hub) Keys(ctx context.Context, r services.KeysRequest) (services.Keys, error) {
	accepted, err := h.keys.Accepted(ctx, r.ID)
	if err != nil {
		return services.Keys{}, services.Unavailable("reading the keys of the bus: %v", err)
	}
	var answer services.Keys
	for _, a := range accepted {
		id := a.ID()
		key := services.BusKey{ID: id[:], Public: a.Public(), Lifetime: a.Lifetime}
		if key.Changes, err = a.Secret(changes.Subject(r.GroupResource)); err == nil {
			key.Progress, err = a.Secret(changes.SubjectProgress)
		}
		if err != nil {
			return services.Keys{}, services.AsStatus(err)
		}
		answer.Keys = append(answer.Keys, key)
	}
	return answer, nil
}

// rotateOnDemand replaces the key of the bus whenever the process receives SIGHUP.
func rotateOnDemand(n *run.Node, hub *Hub) {
	n.Go("replacing keys on demand", func(ctx context.Context) error {
		demands := make(chan os.Signal, 1)
		signal.Notify(demands, syscall.SIGHUP)
		defer signal.Stop(demands)
		for {
			select {
			case <-demands:
				if err := hub.keys.Rotate(ctx); err != nil {
					n.Log.Warn("the key of the bus has not been replaced", "error", err)
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
}
