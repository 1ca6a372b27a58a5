package writes

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

// checkCreate validates the metadata of a new object against the request, and takes its resourceVersion.
func (w *writeRequest) checkCreate(c *current, object map[string]any) error {
	meta := strategy.Metadata(object)
	if err := strategy.CheckNamespace(w.req.Type, w.req.Namespace, meta); err != nil {
		return err
	}
	// As in Kubernetes, a version that is no number has no meaning, so it is dropped, and one that
	// is does not matter before the object is stored, or in a dry-run.
	version, _ := meta["resourceVersion"].(string)
	if number, err := strconv.ParseUint(version, 10, 64); err == nil && number != 0 {
		c.versioned = number
	}
	delete(meta, "resourceVersion")
	return nil
}

// checkUnversioned refuses to store a new object that has a resourceVersion (500, as in Kubernetes).
func (w *writeRequest) checkUnversioned(c *current) error {
	if c.versioned == 0 || w.options.DryRun {
		return nil
	}
	return &services.Status{Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created"}
}

// checkUpdate validates the metadata of a changed object against the request and the
// stored object.
func (w *writeRequest) checkUpdate(c *current, object map[string]any) error {
	meta := strategy.Metadata(object)
	if err := strategy.CheckNamespace(w.req.Type, w.req.Namespace, meta); err != nil {
		return err
	}
	if err := strategy.CheckName(w.req.Name, meta); err != nil {
		return err
	}
	if !c.exists() {
		return strategy.CheckAbsent(w.req.Type, w.req.Name, meta, w.applies())
	}
	if given, _ := meta["uid"].(string); w.req.Verb == "update" && given != "" && given != c.object.UID {
		return services.Conflict(w.req.Type.Group, w.req.Type.Resource, w.req.Name,
			fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", given, c.object.UID))
	}
	return w.checkVersion(c, meta)
}

// checkVersion rejects a change that is based on an older resourceVersion. A patch is
// based on the current object unless it sets metadata.resourceVersion. That there is none is
// reported later, because malformed objects are malformed requests before that.
func (w *writeRequest) checkVersion(c *current, meta map[string]any) error {
	given, _ := meta["resourceVersion"].(string)
	delete(meta, "resourceVersion")
	current, _ := strategy.Metadata(c.tree)["resourceVersion"].(string)
	switch {
	case given == current:
		return nil
	case given != "" && given != "0":
		if _, err := strconv.ParseUint(given, 10, 64); err != nil {
			return services.BadRequest("metadata.resourceVersion: Invalid value: %q: %v", given, err)
		}
	case w.req.Type.Behavior.RequireResourceVersion:
		zero := "0"
		if w.req.Engine.Types.Release().Before(release.V136) {
			zero = "0x0"
		}
		c.unversioned = services.Invalid(w.req.Type.Group, w.req.Type.Resource, w.req.Name, []services.StatusCause{{Reason: services.CauseInvalid,
			Field: "metadata.resourceVersion", Message: "Invalid value: " + zero + ": must be specified for an update"}})
		return nil
	default:
		return nil
	}
	return services.ConflictModified(w.req.Type.Group, w.req.Type.Resource, w.req.Name)
}
