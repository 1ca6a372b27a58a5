package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// patched applies the patch to the current object, or to the body of the request's
// subresource that is derived from it.
func (h *Handlers) patched(ctx context.Context, w *writeRequest, c *current) (d desired, err error) {
	shown := c.tree
	if c.exists() {
		if shown, err = w.subject.Show(c.tree); err != nil {
			return d, err
		}
	}
	r := w.patchRequest(w.bodyType, shown)
	r.Force = r.Force || w.req.Engine.OwnsAppliedScale(w.req.Subresource) // put finds its conflicts
	d.tree, d.strict, err = w.req.Engine.Merge.Patch(ctx, r)
	if w.applies() && len(d.strict) > 0 && w.options.FieldValidation == schema.Strict {
		return d, services.BadRequest("error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  %s", strings.Join(d.strict, "\n  "))
	}
	if err != nil {
		return d, err
	}
	return d, w.checkPatched(d.tree, w.bodyType)
}

func (w *writeRequest) patchRequest(t *catalogue.Type, current map[string]any) fieldmanager.PatchRequest {
	manager := w.options.Manager
	if manager == "" && !w.applies() {
		manager = w.fieldManager()
	}
	return fieldmanager.PatchRequest{Type: t, MediaType: w.mediaType, Body: w.raw, Current: current, Manager: manager,
		Force: w.options.Force, Subresource: w.req.SubresourceName()}
}

// checkPatched rejects a patch that changes the kind or apiVersion of the object. A
// strategic merge patch cannot change them. Patches of built-in types may remove the kind,
// which is restored.
func (w *writeRequest) checkPatched(body map[string]any, t *catalogue.Type) error {
	kind, _ := body["kind"].(string)
	version, _ := body["apiVersion"].(string)
	wrong := strategy.WrongIdentity(body)
	switch {
	case w.applies():
		return strategy.CheckIdentity(body, t)
	case wrong != "":
		return w.unfit(body, wrong)
	case w.mediaType == fieldmanager.MediaTypeStrategic, !t.Custom && kind == "" && (version == t.APIVersion() || version == "" && !w.req.Engine.Types.Release().Before(release.V136)):
		body["kind"], body["apiVersion"] = t.Kind, t.APIVersion()
		return nil
	case kind == "":
		return w.unfit(body, "Object 'Kind' is missing")
	case version == "":
		return wire.CheckKind(body, t)
	case kind == t.Kind && version == t.APIVersion():
		return nil
	case !t.Custom:
		return w.unfit(body, fmt.Sprintf("no kind %q is registered for version %q", kind, version))
	}
	differs, given, want := "kind", kind, t.Kind
	if kind == want {
		differs, given, want = "apiVersion", version, t.APIVersion()
	}
	name := tree.Text(body, "metadata", "name")
	group, _, _ := strings.Cut(version, "/")
	if group == version {
		group = ""
	}
	return services.Invalid(group, kind, name, []services.StatusCause{{Reason: services.CauseInvalid,
		Field: differs, Message: fmt.Sprintf("Invalid value: %q: must be %s", given, want)}})
}

// unfit returns the Invalid error (422) of a patch whose result does not match the type.
// The message contains the patch of a strategic merge, otherwise the result.
func (w *writeRequest) unfit(body map[string]any, why string) error {
	shown, _ := tree.Encode(body) // it has been decoded
	if w.mediaType == fieldmanager.MediaTypeStrategic {
		var patch map[string]any
		_ = json.Unmarshal(w.raw, &patch) // it has been read already
		shown = fmt.Appendf(nil, "%+v", patch)
	}
	return services.Invalid("", "", "", []services.StatusCause{{Reason: services.CauseInvalid,
		Field: "patch", Message: fmt.Sprintf("Invalid value: %q: %s", shown, why)}})
}
