package typesystem

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// View returns a stored object in the version of a type. The stored bytes are returned as
// they are when they are in that version already.
func (e *Engine) View(ctx context.Context, object services.Object, t *catalogue.Type) (services.Object, error) {
	if e.isView(object, t) {
		return object, nil
	}
	converted, err := e.DecodeStored(ctx, object, t)
	if err != nil {
		return object, err
	}
	object.JSON, err = tree.Encode(converted)
	return object, err
}

// isView reports whether the stored bytes can be returned for a type without conversion or
// defaulting.
func (e *Engine) isView(object services.Object, t *catalogue.Type) bool {
	head, ok := e.heads[t]
	return ok && bytes.HasPrefix(object.JSON, head) && object.Revision >= t.Since
}

// Views is View for a page of a list. It calls a conversion webhook once per page. It does
// not modify the given objects.
func (e *Engine) Views(ctx context.Context, objects []services.Object, t *catalogue.Type) ([]services.Object, error) {
	var others []int
	for i := range objects {
		if !e.isView(objects[i], t) {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return objects, nil
	}
	views := slices.Clone(objects)
	if t.Webhook == nil {
		for _, i := range others {
			if ctx.Err() != nil {
				return nil, services.AsStatus(ctx.Err())
			}
			var err error
			if views[i], err = e.View(ctx, objects[i], t); err != nil {
				return nil, err
			}
		}
		return views, nil
	}
	return views, e.convertByWebhook(ctx, views, others, t)
}

// convertByWebhook replaces the objects of a page at the given indices by the conversion
// webhook's results.
func (e *Engine) convertByWebhook(ctx context.Context, page []services.Object, which []int, t *catalogue.Type) error {
	decoded := make([]map[string]any, len(which))
	for n, i := range which {
		var err error
		if decoded[n], err = e.decode(page[i], t); err != nil {
			return err
		}
	}
	converted, err := t.Webhook.Convert(ctx, decoded, t.APIVersion())
	if err != nil {
		return err
	}
	for n, i := range which {
		e.Schemas.Drop(t, converted[n])
		if page[i].JSON, err = tree.Encode(converted[n]); err != nil {
			return err
		}
	}
	return nil
}

// DecodeStored decodes a stored object in the version of a type.
func (e *Engine) DecodeStored(ctx context.Context, o services.Object, t *catalogue.Type) (map[string]any, error) {
	object, err := e.decode(o, t)
	if err != nil {
		return nil, err
	}
	return e.convert(ctx, object, t)
}

// decode decodes a stored object in its stored version. An object of a custom type that may
// be older than the schema is pruned and defaulted.
func (e *Engine) decode(o services.Object, t *catalogue.Type) (map[string]any, error) {
	object, err := tree.Decode(o.JSON)
	if err != nil || o.Revision >= t.Since {
		return object, err
	}
	apiVersion, _ := object["apiVersion"].(string)
	if own := t.Siblings[strings.TrimPrefix(apiVersion, t.Group+"/")]; own != nil {
		e.Schemas.Complete(own, object)
	}
	return object, nil
}

// Kept returns the content to store for an object of a custom type in its stored version,
// after pruning and defaulting.
func (e *Engine) Kept(o services.Object, t *catalogue.Type) (services.Content, error) {
	object, err := e.decode(o, t)
	if err != nil {
		return services.Content{}, err
	}
	delete(strategy.Metadata(object), "resourceVersion")
	raw, err := EncodeWhole(object)
	return services.Content{JSON: raw, UID: o.UID, Labels: o.Labels, Fields: recordedFields(t, object, raw)}, err
}

// convert returns an object in the version of a type. For custom types it drops the fields
// that the schema of that version does not have. It may modify the object.
func (e *Engine) convert(ctx context.Context, object map[string]any, t *catalogue.Type) (map[string]any, error) {
	converted, err := e.Versions.Convert(ctx, object, t)
	if err != nil || !t.Custom || len(t.Siblings) < 2 {
		return converted, err
	}
	e.Schemas.Drop(t, converted)
	return converted, nil
}

// Show returns the body of a response for a stored object and a path.
func (e *Engine) Show(ctx context.Context, object services.Object, t *catalogue.Type, s *catalogue.Subresource) (services.Object, error) {
	subject := SubjectOf(s)
	if subject == (itself{}) {
		return e.View(ctx, object, t)
	}
	live, err := e.DecodeStored(ctx, object, t)
	if err != nil {
		return object, err
	}
	if s, ok := subject.(scale); ok {
		if err := s.checkReplicas(live); err != nil {
			return object, err
		}
	}
	shown, err := subject.Show(live)
	if err != nil {
		return object, err
	}
	object.UID = "" // the result is not the stored object
	object.JSON, err = tree.Encode(shown)
	return object, err
}
