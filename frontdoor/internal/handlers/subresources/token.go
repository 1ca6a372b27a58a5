package subresources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/issuer"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// issue makes a token for a service account. Nothing is stored: a token ends with
// its time, its account, or the object that it is bound to.
func (h *Handlers) issue(w http.ResponseWriter, r *request.Request) error {
	if h.Tokens == nil {
		return request.NoPath()
	}
	bodyType := r.Engine.BodyType(r.Type, r.Subresource)
	form, err := h.Codec.Negotiate(r.Request, bodyType, wire.Object)
	if err != nil {
		return err
	}
	a, err := h.read(w, r, bodyType)
	if err != nil {
		return err
	}
	if err := h.admit(w, a); err != nil {
		return err
	}
	if err := r.Engine.Schemas.Validate(r.Context(), bodyType, a.body, nil); err != nil {
		return err
	}
	account, err := h.object(r.Context(), "serviceaccounts", a.Namespace, r.Name)
	if err != nil {
		return err
	}
	if err := h.fillToken(r.Context(), a, account); err != nil {
		return err
	}
	raw, err := tree.Encode(a.body)
	if err != nil {
		return err
	}
	return h.Codec.Encoder(form, bodyType).Object(w, h.Vocabulary.Behaviour.CreatedStatus, services.Object{JSON: raw})
}

// fillToken completes the request with the token.
func (h *Handlers) fillToken(ctx context.Context, a *action, account map[string]any) error {
	spec, err := as[authenticationv1.TokenRequestSpec](tree.Object(a.body, "spec"))
	if err != nil {
		return err
	}
	whom := issuer.Subject{Namespace: a.Namespace, ServiceAccount: nameOf(account)}
	if spec.BoundObjectRef != nil {
		if err := h.bindToken(ctx, a, spec.BoundObjectRef, &whom); err != nil {
			return err
		}
	}
	if spec.ExpirationSeconds == nil {
		return services.BadRequest("spec.expirationSeconds: must be specified")
	}
	seconds := h.Tokens.Lifetimes.Bound(*spec.ExpirationSeconds)
	tree.Object(a.body, "spec")["expirationSeconds"] = seconds
	valid, warnAfter := h.Tokens.Lifetimes.Validity(seconds, whom.Pod != nil)
	from := h.Now()
	if warnAfter > 0 {
		whom.WarnAfter = jwt.NewNumericDate(from.Add(warnAfter))
	}
	// The client should replace an extended token at the time that it requested.
	replace := from.Add(time.Duration(seconds) * time.Second)
	claims := jwt.Claims{Subject: services.UserServiceAccountStart + a.Namespace + ":" + a.Name, Audience: spec.Audiences, ID: newTokenID(a)}
	token, err := h.Tokens.Issue(claims, whom, from, from.Add(valid))
	if err != nil {
		return err
	}
	if claims.ID != "" { // which those who are authenticated with the token have in their extra values
		a.Audit.Annotate(h.Vocabulary.Qualified("authentication", "issued-credential-id"), "JTI="+claims.ID)
	}
	strategy.Metadata(a.body)["creationTimestamp"] = from.UTC().Format(time.RFC3339)
	a.body["status"] = map[string]any{"token": token, "expirationTimestamp": replace.UTC().Format(time.RFC3339)}
	return nil
}

// newTokenID returns an ID for a token; empty at releases whose tokens have none.
func newTokenID(a *action) string {
	if a.Engine.Types.Release().Before(release.V136) {
		return ""
	}
	return string(uuid.NewUUID())
}

// bindToken binds a token to a pod, which must run as the account, to a secret or, from 1.33 on,
// to a node.
func (h *Handlers) bindToken(ctx context.Context, a *action, ref *authenticationv1.BoundObjectReference, whom *issuer.Subject) error {
	withNodes := !a.Engine.Types.Release().Before(release.V136)
	type bound struct {
		resource, namespace string
		into                **issuer.Named
	}
	kinds := map[string]bound{"Pod": {"pods", a.Namespace, &whom.Pod}, "Secret": {"secrets", a.Namespace, &whom.Secret}}
	if withNodes {
		kinds["Node"] = bound{"nodes", "", &whom.Node}
	}
	kind, ok := kinds[ref.Kind]
	if is := apischema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); !ok || is.Group != "" {
		return services.BadRequest("cannot bind token to object of type %s", is)
	}
	if ref.Name == "" {
		return services.BadRequest("Name parameter required.")
	}
	object, err := h.object(ctx, kind.resource, kind.namespace, ref.Name)
	if err != nil {
		return err
	}
	if runs := tree.Text(object, "spec", "serviceAccountName"); ref.Kind == "Pod" && runs != a.Name {
		return services.BadRequest("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", a.Name)
	}
	named := nameOf(object)
	if ref.UID != "" && string(ref.UID) != named.UID {
		return services.Conflict("", ref.Kind, ref.Name, fmt.Sprintf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	*kind.into = &named
	if on := tree.Text(object, "spec", "nodeName"); ref.Kind == "Pod" && on != "" && withNodes {
		whom.Node, err = h.node(ctx, on)
	}
	return err
}

// node names the node of a pod, without a UID if the node does not exist.
func (h *Handlers) node(ctx context.Context, name string) (*issuer.Named, error) {
	object, err := h.object(ctx, "nodes", "", name)
	if services.IsReason(err, services.ReasonNotFound) {
		return &issuer.Named{Name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	node := nameOf(object)
	return &node, nil
}

// object reads an object of the core group.
func (h *Handlers) object(ctx context.Context, of, namespace, name string) (map[string]any, error) {
	stored, err := h.Store.Get(ctx, services.GetRequest{Key: resource.Key{
		GroupResource: resource.GroupResource{Resource: of}, Namespace: namespace, Name: name}})
	if err != nil {
		return nil, err
	}
	return tree.Decode(stored.JSON)
}

func nameOf(object map[string]any) issuer.Named {
	return issuer.Named{Name: tree.Text(object, "metadata", "name"), UID: tree.Text(object, "metadata", "uid")}
}
