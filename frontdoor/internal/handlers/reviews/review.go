// Package reviews serves the virtual types: a question goes in, the same object with
// its status comes out, and nothing is stored. authn and authz answer; this package
// translates. It serves "Terminology", "TokenReview" and "Authorization notes" of
// the specification.
package reviews

import (
	"context"
	"encoding/json"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/warning"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Handlers answer reviews.
type Handlers struct {
	Authn      services.Authn
	Authz      services.Authz
	Admission  services.Admission
	Codec      *wire.Codec
	Vocabulary vocabulary.Vocabulary
}

// Review answers a virtual type (section "Terminology").
func (h *Handlers) Review(w http.ResponseWriter, r *request.Request) error {
	answers := map[string]func(context.Context, *request.Request, []byte) (any, error){
		"tokenreviews":              h.reviewToken,
		"subjectaccessreviews":      h.reviewSubjectAccess,
		"localsubjectaccessreviews": h.reviewSubjectAccess,
		"selfsubjectaccessreviews":  h.reviewSelfAccess,
		"selfsubjectrulesreviews":   h.reviewSelfRules,
	}
	answer, ok := answers[r.Type.Resource]
	if !ok {
		return request.NoMethod()
	}
	form, err := h.Codec.Negotiate(r.Request, r.Type, wire.Object)
	if err != nil {
		return err
	}
	options, err := request.ParseWriteOptions(r)
	if err != nil {
		return err
	}
	sent, err := r.ReadBody(w)
	if err != nil {
		return err
	}
	body, err := h.Codec.Decode(r.Header.Get("Content-Type"), sent, r.Type)
	if err != nil {
		return err
	}
	warnings, err := r.Engine.Schemas.Prepare(r.Context(), r.Type, body.Object, options.FieldValidation, body.Strict...)
	if err != nil {
		return err
	}
	warning.Send(w.Header(), warnings...)
	if err := settleNamespace(r, body.Object); err != nil {
		return err
	}
	raw, err := tree.Encode(body.Object)
	if err != nil {
		return err
	}
	if err := h.admitReview(r, raw); err != nil {
		return err
	}
	status, err := answer(r.Context(), r, raw)
	if err != nil {
		return err
	}
	if raw, err = withStatus(body.Object, status); err != nil {
		return err
	}
	return h.Codec.Encoder(form, r.Type).Object(w, h.Vocabulary.Behaviour.CreatedStatus, services.Object{JSON: raw})
}

// settleNamespace gives a review the namespace of its path, which it may repeat. One of
// the cluster is in none.
func settleNamespace(r *request.Request, object map[string]any) error {
	meta := strategy.Metadata(object)
	switch given, _ := meta["namespace"].(string); {
	case !r.Type.Namespaced:
		delete(meta, "namespace")
	case given != "" && given != r.Namespace:
		return services.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	default:
		meta["namespace"] = r.Namespace
	}
	return nil
}

// admitReview asks admission, which sees every create.
func (h *Handlers) admitReview(r *request.Request, raw []byte) error {
	review := services.AdmissionRequest{Operation: services.OperationCreate, Group: r.Type.Group, Version: r.Type.Version,
		Kind: r.Type.Kind, Resource: r.Type.Resource, Namespace: r.Namespace, User: r.User, Object: raw}
	if _, err := h.Admission.Mutate(r.Context(), review); err != nil {
		return err
	}
	_, err := h.Admission.Validate(r.Context(), review)
	return err
}

// withStatus returns the JSON of an object with another status.
func withStatus(object map[string]any, status any) ([]byte, error) {
	object["status"] = status
	return json.Marshal(object)
}

// readSpec reads the spec of a review, which has been prepared.
func readSpec[T any](raw []byte) (T, error) {
	var object struct {
		Spec T `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return object.Spec, services.BadRequest("spec: %v", err)
	}
	return object.Spec, nil
}

// reviewToken answers a TokenReview (section "TokenReview").
func (h *Handlers) reviewToken(ctx context.Context, r *request.Request, raw []byte) (any, error) {
	spec, err := readSpec[authenticationv1.TokenReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if spec.Token == "" {
		return nil, services.BadRequest("token is required for TokenReview in authentication")
	}
	a, err := h.Authn.Authenticate(ctx, services.Credentials{BearerToken: spec.Token, Audiences: spec.Audiences})
	if services.IsReason(err, services.ReasonUnauthorized) {
		return authenticationv1.TokenReviewStatus{Error: why(err)}, nil
	}
	if err != nil {
		return nil, err
	}
	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range a.User.Extra {
		extra[key] = values
	}
	return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: a.Audiences, User: authenticationv1.UserInfo{
		Username: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: extra}}, nil
}

// why tells what is wrong with a token; most authenticators do not say.
func why(err error) string {
	if message := services.AsStatus(err).Message; message != "" && message != string(services.ReasonUnauthorized) {
		return message
	}
	return "invalid bearer token"
}

// accessSpec is the spec of the access reviews of all versions: v1beta1 names the
// groups otherwise.
type accessSpec struct {
	authorizationv1.SubjectAccessReviewSpec
	Group []string `json:"group"`
}

func (h *Handlers) reviewSubjectAccess(ctx context.Context, r *request.Request, raw []byte) (any, error) {
	spec, err := readSpec[accessSpec](raw)
	if err != nil {
		return nil, err
	}
	if len(spec.Groups) == 0 {
		spec.Groups = spec.Group
	}
	if err := checkAccess(r, raw, spec.SubjectAccessReviewSpec); err != nil {
		return nil, err
	}
	extra := map[string][]string{}
	for key, values := range spec.Extra {
		extra[key] = values
	}
	user := services.UserInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: extra}
	return h.accessStatus(ctx, user, spec.SubjectAccessReviewSpec)
}

func (h *Handlers) reviewSelfAccess(ctx context.Context, r *request.Request, raw []byte) (any, error) {
	spec, err := readSpec[authorizationv1.SubjectAccessReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if err := checkAccess(r, raw, spec); err != nil {
		return nil, err
	}
	return h.accessStatus(ctx, r.User, spec)
}

// accessStatus asks authorization the question of a review.
func (h *Handlers) accessStatus(ctx context.Context, user services.UserInfo, spec authorizationv1.SubjectAccessReviewSpec) (any, error) {
	a := services.Attributes{User: user}
	if res, path := spec.ResourceAttributes, spec.NonResourceAttributes; path != nil {
		a.Verb, a.Path = path.Verb, path.Path
	} else {
		a.Verb, a.Group, a.Version, a.Resource, a.Subresource = res.Verb, res.Group, res.Version, res.Resource, res.Subresource
		a.Namespace, a.Name = res.Namespace, res.Name
	}
	decision, err := h.Authz.Authorize(ctx, a)
	if err != nil {
		return nil, err
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Denied: decision.Denied,
		Reason: decision.Reason, EvaluationError: decision.EvaluationError}, nil
}

func (h *Handlers) reviewSelfRules(ctx context.Context, r *request.Request, raw []byte) (any, error) {
	spec, err := readSpec[authorizationv1.SelfSubjectRulesReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if spec.Namespace == "" {
		return nil, services.BadRequest("no namespace on request")
	}
	rules, err := h.Authz.Rules(ctx, services.RulesRequest{User: r.User, Namespace: spec.Namespace})
	if err != nil {
		return nil, err
	}
	status := authorizationv1.SubjectRulesReviewStatus{Incomplete: rules.Incomplete, EvaluationError: rules.EvaluationError,
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	for _, rule := range rules.Resource {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
	}
	for _, rule := range rules.NonResource {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.Paths})
	}
	return status, nil
}
