package admit

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/merging"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// served returns the types that serve the objects of a request, its own first.
func served(r *request.Request) []services.ServedType {
	shared := r.Engine.Types.Sharing(r.Type)
	types := make([]services.ServedType, 1, len(shared)+1)
	for _, t := range shared {
		subresource := r.Subresource
		if subresource != nil {
			if subresource = t.Subresources[subresource.Name]; subresource == nil {
				continue
			}
		}
		group, version, kind := typesystem.BodyKind(t, subresource)
		found := services.ServedType{Group: t.Group, Version: t.Version, Resource: t.Resource, KindGroup: group, KindVersion: version, Kind: kind}
		if t == r.Type {
			types[0] = found
		} else {
			types = append(types, found)
		}
	}
	return types
}

// converter converts the objects of a request between the types that serve them, and merges
// apply configurations into them.
type converter struct{ request *request.Request }

// Convert implements services.Converter. An object of another type is a BadRequest.
func (c converter) Convert(ctx context.Context, object []byte, to services.ServedType) ([]byte, error) {
	decoded, _, err := c.decode(object)
	if err != nil {
		return nil, err
	}
	target, ok := c.request.Engine.Types.Lookup(to.Group, to.Version, to.Resource)
	if !ok || target.Key != c.request.Type.Key {
		return nil, services.BadRequest("%s of %s/%s does not serve %s.%s", to.Resource, to.Group, to.Version, c.request.Type.Resource, c.request.Type.Group)
	}
	converted, err := c.request.Engine.Versions.Convert(ctx, decoded, target)
	if err != nil {
		return nil, err
	}
	return tree.Encode(converted)
}

// decode decodes an object of the request, and returns its type. An object of another type is
// a BadRequest.
func (c converter) decode(object []byte) (map[string]any, *catalogue.Type, error) {
	decoded, err := tree.Decode(object)
	if err != nil {
		return nil, nil, services.BadRequest("the object is not JSON: %v", err)
	}
	apiVersion, kind := tree.Text(decoded, "apiVersion"), tree.Text(decoded, "kind")
	t, ok := c.request.Engine.Types.ByAPIVersion(apiVersion, kind)
	if !ok || t.Key != c.request.Type.Key {
		return nil, nil, services.BadRequest("%s, Kind=%s is not served as %s.%s", apiVersion, kind, c.request.Type.Resource, c.request.Type.Group)
	}
	return decoded, t, nil
}

// Merge implements services.Converter. The configuration has the apiVersion and kind of the
// object.
func (c converter) Merge(_ context.Context, object, configuration []byte, _ services.ServedType) ([]byte, error) {
	decoded, t, err := c.decode(object)
	if err != nil {
		return nil, err
	}
	config, err := tree.Decode(configuration)
	if err != nil {
		return nil, services.BadRequest("the apply configuration is not JSON: %v", err)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		config[field] = decoded[field]
	}
	merged, err := merging.Merge(c.request.Engine.Merge, t, decoded, config)
	if err != nil {
		return nil, err
	}
	return tree.Encode(merged)
}
