package method

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// storedObject is the part of stored core objects that methods read.
type storedObject struct {
	Metadata struct {
		UID               string            `json:"uid"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Type    string            `json:"type"`    // of a secret
	Data    map[string][]byte `json:"data"`    // of a secret
	Secrets []named           `json:"secrets"` // of a service account
}

// coreKey returns the key of an object of the core group.
func coreKey(kind, namespace, name string) resource.Key {
	return resource.Key{GroupResource: resource.GroupResource{Resource: kind}, Namespace: namespace, Name: name}
}

func readObject(ctx context.Context, store services.Reader, key resource.Key, read services.Read) (storedObject, error) {
	var object storedObject
	stored, err := store.Get(ctx, services.GetRequest{Key: key, Read: read})
	if read.Mode == services.NotOlderThan && services.IsReason(err, services.ReasonTimeout) {
		// A revision of the future, from before etcd was restored.
		stored, err = store.Get(ctx, services.GetRequest{Key: key})
	}
	if err != nil {
		return object, err
	}
	if err := json.Unmarshal(stored.JSON, &object); err != nil {
		return object, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	return object, nil
}

// anyState returns the cheapest read that the credentials allow.
func anyState(c services.Credentials) services.Read {
	if c.NotOlderThan > 0 {
		return services.Read{Mode: services.NotOlderThan, Revision: c.NotOlderThan}
	}
	return services.Read{Mode: services.AnyRevision}
}
