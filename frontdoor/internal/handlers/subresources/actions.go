// Package subresources serves the paths whose body requests an action and is no state
// to be kept: binding a pod to a node, evicting a pod, a token for a service account.
// It decides whether the action may be done now, and does it through package writes. It
// never reads or writes bodies of resources that are kept. It serves "What the service
// does" (subresources) and "Dry-run" of the specification.
package subresources

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Handlers serve actions.
type Handlers struct {
	Store      services.Reader
	Writes     *writes.Handlers
	Admission  services.Admission
	Codec      *wire.Codec
	Vocabulary vocabulary.Vocabulary
	// Tokens signs those of service accounts; nil when no key is there to do so.
	Tokens *issuer.Issuer
	Now    func() time.Time
}

// Of returns what serves the path of a request; nil if it is not an action.
func (h *Handlers) Of(r *request.Request) request.Handler {
	if r.Type == nil || r.Type.Group != "" {
		return nil
	}
	if r.Verb != "create" {
		return nil
	}
	switch r.Type.Resource + "/" + r.SubresourceName() {
	case "bindings/", "pods/binding":
		return h.bind
	case "pods/eviction":
		return h.evict
	case "serviceaccounts/token":
		return h.issue
	}
	return nil
}

// action is a request for an action: the body, and what it is.
type action struct {
	*request.Request
	options  request.WriteOptions
	bodyType *catalogue.Type
	body     map[string]any
	// admission collects the warnings, too.
	admission *admit.Call
}

// read reads the body, of the first of the given types that it is of, and completes
// its name and namespace from the path.
func (h *Handlers) read(w http.ResponseWriter, r *request.Request, types ...*catalogue.Type) (*action, error) {
	options, err := request.ParseWriteOptions(r)
	if err != nil {
		return nil, err
	}
	if _, err := h.Codec.Negotiate(r.Request, types[0], wire.Object); err != nil {
		return nil, err
	}
	sent, err := r.ReadBody(w)
	if err != nil {
		return nil, err
	}
	a := &action{Request: r, options: options, admission: admit.Write(h.Admission, r, options)}
	var body wire.Body
	for _, a.bodyType = range types {
		if body, err = h.Codec.Decode(r.Header.Get("Content-Type"), sent, a.bodyType, r.Charge); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	a.body = body.Object
	warnings, err := r.Engine.Schemas.PrepareBody(r.Context(), schema.Body{Definition: a.bodyType.Definition, Version: a.bodyType.Version,
		Kind: a.bodyType.Kind}, a.body, options.FieldValidation, body.Strict...)
	a.admission.Warn(warnings...)
	if err != nil {
		return nil, err
	}
	return a, a.nameBody()
}

// nameBody holds the name and namespace of the body against the path. Who asks for a
// token need not say whose; what happens to a pod is said twice.
func (a *action) nameBody() error {
	meta := strategy.Metadata(a.body)
	if given, _ := meta["namespace"].(string); given != "" && given != a.Namespace {
		return services.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	meta["namespace"] = a.Namespace
	given, _ := meta["name"].(string)
	if given == "" && a.SubresourceName() == "token" {
		given = a.Name
		meta["name"] = given
	}
	if a.Name != "" && given != a.Name {
		return services.BadRequest("name in URL does not match name in %s object", a.bodyType.Kind)
	}
	return nil
}

// admit lets admission see the request, and change its body. The warnings of the request
// go into the headers of w, be it admitted or not.
func (h *Handlers) admit(w http.ResponseWriter, a *action) error {
	defer a.admission.SendNotes(w.Header())
	ctx := a.Context()
	raw, err := tree.Encode(a.body)
	if err != nil {
		return err
	}
	name := tree.Text(a.body, "metadata", "name")
	review := a.admission.Review(admit.Subject{Operation: services.OperationCreate, Type: a.bodyType, Namespace: a.Namespace, Name: name})
	changed, err := review.Mutate(ctx, admit.Object{JSON: raw})
	if err != nil {
		return err
	}
	if changed != nil {
		if err := a.takeMutated(changed); err != nil {
			return err
		}
	}
	if h.settle(a) || changed != nil {
		if raw, err = tree.Encode(a.body); err != nil {
			return err
		}
	}
	return review.Validate(ctx, admit.Object{JSON: raw})
}

// settle sets what validating admission sees and mutating admission does not: the audiences of
// a request for a token that names none. It reports whether it has changed the body.
func (h *Handlers) settle(a *action) bool {
	if a.SubresourceName() != "token" || len(tree.List(a.body, "spec", "audiences")) > 0 {
		return false
	}
	tree.Object(a.body, "spec")["audiences"] = tree.ListOf(h.Tokens.Audiences)
	return true
}

// takeMutated replaces the body by the one that mutating admission has returned. What
// the action is about stays as it was: kind, name and namespace are compared, and the
// preconditions uid and resourceVersion restored.
func (a *action) takeMutated(raw []byte) error {
	mutated, err := tree.Decode(raw)
	if err != nil {
		return err
	}
	if err := typesystem.CheckIdentity(a.body, mutated); err != nil {
		return err
	}
	was, is := strategy.Metadata(a.body), strategy.Metadata(mutated)
	for _, field := range []string{"namespace", "uid", "resourceVersion"} {
		if value, ok := was[field]; ok {
			is[field] = value
		} else {
			delete(is, field)
		}
	}
	a.body = mutated
	return nil
}

// done answers an action that leaves nothing to show.
func (h *Handlers) done(w http.ResponseWriter, a *action) {
	h.Codec.WriteStatus(w, a.Request.Request, &services.Status{Code: int32(h.Vocabulary.Behaviour.CreatedStatus)})
}

// as reads an object, or a part of one, into its Go type.
func as[T any](object map[string]any) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return nil, services.BadRequest("%v", err)
	}
	return typed, nil
}
