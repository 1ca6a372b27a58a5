package bootstrap

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// SealingKey returns the key that seals continue tokens, which all front doors share: the first one to start stores a new
// one, under a resource that the API does not serve. One that cannot be read is replaced: the tokens end, and nothing
// else.
func SealingKey(ctx context.Context, store services.Store, log *slog.Logger, newKey func() []byte) ([]byte, error) {
	key := resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "sealing-keys"}, Name: "continue"}
	type stored struct {
		Metadata map[string]string `json:"metadata"`
		Key      string            `json:"key"`
	}
	object, err := store.Get(ctx, services.GetRequest{Key: key})
	revision, unreadable := services.UnreadableRevision(err)
	if unreadable || services.IsReason(err, services.ReasonNotFound) {
		raw, marshal := json.Marshal(stored{map[string]string{"name": key.Name}, base64.StdEncoding.EncodeToString(newKey())})
		if marshal != nil {
			return nil, marshal
		}
		if unreadable {
			log.Error("the key of continue tokens cannot be read and is replaced", "error", err)
			object, err = store.Update(ctx, services.UpdateRequest{Key: key, Revision: revision, Content: services.Content{JSON: raw}})
		} else {
			object, err = store.Create(ctx, services.CreateRequest{Key: key, Content: services.Content{JSON: raw}})
		}
		if services.IsReason(err, services.ReasonAlreadyExists) || services.IsConflict(err) { // another replica was first
			object, err = store.Get(ctx, services.GetRequest{Key: key})
		}
	}
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal(object.JSON, &s); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(s.Key)
}
