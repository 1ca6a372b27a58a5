package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// patched returns the object with the patch applied to what the path shows of it.
func (h *Handlers) patched(ctx context.Context, c *change) (map[string]any, error) {
	shown := c.live
	if c.exists() {
		var err error
		if shown, err = c.subject.Show(c.live); err != nil {
			return nil, err
		}
	}
	manager := c.options.Manager
	if manager == "" && c.mediaType != fieldmanager.MediaTypeApply {
		manager = c.fieldManager()
	}
	bodyType := c.Engine.BodyType(c.Type, c.Subresource)
	body, objections, err := c.Engine.Merge.Patch(ctx, fieldmanager.PatchRequest{Type: bodyType, MediaType: c.mediaType, Body: c.raw,
		Current: shown, Manager: manager, Force: c.options.Force, Subresource: c.SubresourceName()})
	if err != nil {
		return nil, err
	}
	if err := c.checkPatched(body, bodyType); err != nil {
		return nil, err
	}
	c.body.Strict = objections
	if !c.exists() {
		return body, nil
	}
	return c.put(ctx, body)
}

// checkPatched refuses a patch that makes another kind of the object. A strategic
// merge cannot; and what a patch takes away is understood, but for custom types.
func (c *change) checkPatched(body map[string]any, t *catalogue.Type) error {
	kind, _ := body["kind"].(string)
	version, _ := body["apiVersion"].(string)
	_, described := body["metadata"].(map[string]any)
	switch {
	case c.applies():
		return nil
	case !described && body["metadata"] != nil:
		return c.unfit(body, "metadata: expected an object")
	case c.mediaType == fieldmanager.MediaTypeStrategic, !t.Custom && kind == "" && version == t.APIVersion():
		body["kind"], body["apiVersion"] = t.Kind, t.APIVersion()
		return nil
	case kind == "":
		return c.unfit(body, "Object 'Kind' is missing")
	case version == "":
		return wire.CheckKind(body, t)
	case kind == t.Kind && version == t.APIVersion():
		return nil
	case !t.Custom:
		return c.unfit(body, fmt.Sprintf("no kind %q is registered for version %q", kind, version))
	}
	differs, given, want := "kind", kind, t.Kind
	if kind == want {
		differs, given, want = "apiVersion", version, t.APIVersion()
	}
	name, _ := strategy.Metadata(body)["name"].(string)
	group, _, _ := strings.Cut(version, "/")
	if group == version {
		group = ""
	}
	return services.Invalid(group, kind, name, []services.StatusCause{{Reason: services.CauseInvalid,
		Field: differs, Message: fmt.Sprintf("Invalid value: %q: must be %s", given, want)}})
}

// unfit is the 422 of a patch after which the object does not fit its type: it shows
// the patch or, where that says how and not what, the object.
func (c *change) unfit(body map[string]any, why string) error {
	shown, _ := tree.Encode(body) // it has been decoded
	if c.mediaType == fieldmanager.MediaTypeStrategic {
		var patch map[string]any
		_ = json.Unmarshal(c.raw, &patch) // it has been read already
		shown = fmt.Appendf(nil, "%+v", patch)
	}
	return services.Invalid("", "", "", []services.StatusCause{{Reason: services.CauseInvalid,
		Field: "patch", Message: fmt.Sprintf("Invalid value: %q: %s", shown, why)}})
}
