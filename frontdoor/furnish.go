package frontdoor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// apiserver is who the front door itself acts as.
func apiserver() services.UserInfo {
	return services.UserInfo{Name: "system:apiserver", Groups: []string{services.GroupMasters, services.GroupAuthenticated}}
}

// furnish creates the objects that every cluster starts with, where they are
// missing. They take the way of every other write, but nobody has to be asked
// whether the front door may.
func (d *door) furnish(ctx context.Context) error {
	objects, err := bootstrap.Objects(d.vocabulary)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := d.create(ctx, object); err != nil && !services.IsReason(err, services.ReasonAlreadyExists) {
			return err
		}
	}
	return nil
}

// create writes one object of the front door's own.
func (d *door) create(ctx context.Context, object map[string]any) error {
	group, version := splitAPIVersion(object["apiVersion"])
	kind, _ := object["kind"].(string)
	t, ok := d.types.ByKind(group, version, kind)
	if !ok {
		return nil // turned off with --runtime-config
	}
	r := &Request{Request: (&http.Request{Header: http.Header{}}).WithContext(ctx), Verb: "create", Type: t, User: apiserver(), Caller: apiserver(), Audit: &auditRecord{}}
	x := &writing{Request: r, subject: itself{}}
	x.options.manager = "portico"
	x.body.Object = object
	meta, _ := object["metadata"].(map[string]any)
	r.Namespace, _ = meta["namespace"].(string)
	name, _ := meta["name"].(string)
	key := resource.Key{GroupResource: t.Key, Namespace: r.Namespace, Name: name}
	if _, err := d.storage.Get(ctx, services.GetRequest{Key: key}); err == nil {
		return nil
	}
	_, err := d.attempt(ctx, x)
	return err
}

func splitAPIVersion(v any) (group, version string) {
	text, _ := v.(string)
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == '/' {
			return text[:i], text[i+1:]
		}
	}
	return "", text
}

// sealingKey returns the key that continue tokens are sealed with. All replicas
// share it: the first one to start stores it, outside of what the API shows.
func (d *door) sealingKey(ctx context.Context) ([]byte, error) {
	key := resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "sealing-keys"}, Name: "continue"}
	type stored struct {
		Metadata map[string]string `json:"metadata"`
		Key      string            `json:"key"`
	}
	object, err := d.storage.Get(ctx, services.GetRequest{Key: key})
	if services.IsReason(err, services.ReasonNotFound) {
		raw, marshal := json.Marshal(stored{map[string]string{"name": key.Name}, base64.StdEncoding.EncodeToString(newKey())})
		if marshal != nil {
			return nil, marshal
		}
		object, err = d.storage.Create(ctx, services.CreateRequest{Key: key, Content: services.Content{JSON: raw}})
		if services.IsReason(err, services.ReasonAlreadyExists) { // another replica was faster
			object, err = d.storage.Get(ctx, services.GetRequest{Key: key})
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
