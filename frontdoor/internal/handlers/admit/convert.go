package admit

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
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

// converter converts the objects of a request between the types that serve them.
type converter struct{ request *request.Request }

// Convert implements services.Converter. An object of another type is a BadRequest.
func (c converter) Convert(ctx context.Context, object []byte, to services.ServedType) ([]byte, error) {
	r := c.request
	decoded, err := tree.Decode(object)
	if err != nil {
		return nil, services.BadRequest("the object is not JSON: %v", err)
	}
	apiVersion, kind := tree.Text(decoded, "apiVersion"), tree.Text(decoded, "kind")
	if from, ok := r.Engine.Types.ByAPIVersion(apiVersion, kind); !ok || from.Key != r.Type.Key {
		return nil, services.BadRequest("%s, Kind=%s is not served as %s.%s", apiVersion, kind, r.Type.Resource, r.Type.Group)
	}
	target, ok := r.Engine.Types.Lookup(to.Group, to.Version, to.Resource)
	if !ok || target.Key != r.Type.Key {
		return nil, services.BadRequest("%s of %s/%s does not serve %s.%s", to.Resource, to.Group, to.Version, r.Type.Resource, r.Type.Group)
	}
	converted, err := r.Engine.Versions.Convert(ctx, decoded, target)
	if err != nil {
		return nil, err
	}
	return tree.Encode(converted)
}
