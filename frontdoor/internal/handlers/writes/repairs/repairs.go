// Package repairs deletes and replaces objects whose stored values cannot be read. No process knows their finalizers, their
// owners or what admission would say of them, so that none of these count, and the user needs services.VerbUnsafeDelete
// on them, as in Kubernetes for a deletion with ignoreStoreReadErrorWithClusterBreakingPotential. It never decides what
// replaces an object. It serves "Two-phase deletion of a resource" of the specification.
package repairs

import (
	"context"
	"encoding/json"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/races"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Repairer repairs objects. All fields are required.
type Repairer struct {
	Store services.Store
	// Allow authorizes what a request does beyond its verb.
	Allow func(*request.Request, services.Attributes) error
	Log   *slog.Logger
}

// may returns nil if the user of a request may repair an object that cannot be read because of why.
func (p Repairer) may(r *request.Request, why error) error {
	needs := r.Attributes()
	needs.Verb = services.VerbUnsafeDelete
	if err := p.Allow(r, needs); err != nil {
		return err
	}
	p.Log.WarnContext(r.Context(), "an object that cannot be read is deleted or replaced", "verb", r.Verb, "user", r.User.Name, "reason", why)
	return nil
}

// Removal is the deletion of the object of a request.
type Removal struct {
	Request *request.Request
	Options *metav1.DeleteOptions
	DryRun  bool
	// Nameless is true for the deletion of a collection.
	Nameless bool
}

// Remove removes an object, if the user may, and returns what is known of it. why is the error of its read. Without a
// sign that this object is meant, such as of a deletion with a UID, that is the result.
func (p Repairer) Remove(ctx context.Context, x Removal, key resource.Key, why error) (services.Object, error) {
	revision, _ := services.UnreadableRevision(why)
	o, t, given := services.Object{Key: key, Revision: revision}, x.Request.Type, x.Options.Preconditions
	if x.Nameless || given != nil && given.UID != nil {
		return o, why
	}
	if err := strategy.CheckPreconditions(t, given, o); err != nil {
		return o, err
	}
	if err := p.may(x.Request, why); err != nil {
		return o, err
	}
	// Strings always marshal.
	o.JSON, _ = json.Marshal(map[string]any{"apiVersion": t.Stored.APIVersion(), "kind": t.Kind, "metadata": map[string]string{
		"name": key.Name, "namespace": key.Namespace, "resourceVersion": resource.FormatResourceVersion(revision)}})
	if x.DryRun {
		return o, nil
	}
	gone, err := p.Store.Delete(ctx, services.DeleteRequest{Key: key, Revision: revision})
	if err == nil {
		o.Revision = gone.Revision
	}
	return o, races.Mark(err)
}

// Replaces returns the revision of the stored value that a request replaces, whose object cannot be read because of why,
// and why if the request does not replace all of it. There is no current object.
func (p Repairer) Replaces(r *request.Request, why error) (none services.Object, revision int64, err error) {
	revision, bad := services.UnreadableRevision(why)
	if !bad || r.Verb != "update" || r.Subresource != nil {
		return none, 0, why
	}
	return none, revision, p.may(r, why)
}

// TakeIdentity takes the UID from an object that replaces one that cannot be read, so that those that name it as their
// owner keep it, and its resourceVersion, which must be that of the stored value if it is set.
func TakeIdentity(r *request.Request, revision int64, object map[string]any) (uid string, err error) {
	if revision == 0 { // nothing is replaced
		return "", nil
	}
	meta := strategy.Metadata(object)
	version, _ := meta["resourceVersion"].(string)
	if version != "" && version != "0" && version != resource.FormatResourceVersion(revision) {
		return "", services.ConflictModified(r.Type.Group, r.Type.Resource, r.Name)
	}
	uid, _ = meta["uid"].(string)
	delete(meta, "resourceVersion")
	delete(meta, "uid")
	return uid, nil
}
