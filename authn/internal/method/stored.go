package method

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// storedObject is the part of stored core objects that methods look at.
type storedObject struct {
	Metadata struct {
		UID               string     `json:"uid"`
		DeletionTimestamp *time.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Type string            `json:"type"` // of a secret
	Data map[string][]byte `json:"data"` // of a secret
}

// readObject reads one object of the core group.
func readObject(ctx context.Context, store services.Reader, kind, namespace, name string, mode services.ReadMode) (storedObject, error) {
	var object storedObject
	stored, err := store.Get(ctx, services.GetRequest{
		Key:  resource.Key{GroupResource: resource.GroupResource{Resource: kind}, Namespace: namespace, Name: name},
		Read: services.Read{Mode: mode},
	})
	if err != nil {
		return object, err
	}
	if err := json.Unmarshal(stored.JSON, &object); err != nil {
		return object, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	return object, nil
}
