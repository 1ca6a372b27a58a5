package watchhub

import (
	"context"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
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
