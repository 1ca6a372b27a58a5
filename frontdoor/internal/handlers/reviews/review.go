// Package reviews serves the virtual types: a review is answered with the same object and
// its status, and is not stored. It translates between these types and the contracts of
// authn and authz. It serves "Terminology", "TokenReview" and "Authorization notes" of the
// specification.
package reviews

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/managers"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
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

// question evaluates the validated spec of a review and returns its status.
type question func(context.Context) (any, error)

// Review serves a create of a virtual type (section "Terminology"). A dry-run has the same
// result, since reviews are not stored; admission receives the dryRun option.
func (h *Handlers) Review(w http.ResponseWriter, r *request.Request) error {
	questions := map[string]func(*request.Request, []byte) (question, error){
		"tokenreviews":              h.reviewToken,
		"selfsubjectreviews":        h.reviewSelf,
		"subjectaccessreviews":      h.reviewSubjectAccess,
		"localsubjectaccessreviews": h.reviewSubjectAccess,
		"selfsubjectaccessreviews":  h.reviewSelfAccess,
		"selfsubjectrulesreviews":   h.reviewSelfRules,
	}
	read, ok := questions[r.Type.Resource]
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
	call := admit.Write(h.Admission, r, options)
	object, err := h.readObject(w, r, options.FieldValidation, call)
	if err != nil {
		return err
	}
	// An error leaves the answer without owners, and is no reason to refuse it.
	_ = r.Engine.Merge.Track(fieldmanager.Change{Type: r.Type, New: object,
		Manager: cmp.Or(options.Manager, managers.FromUserAgent(r.UserAgent()))})
	object, status, err := h.answer(r, object, call, read)
	call.SendNotes(w.Header())
	if err != nil {
		return err
	}
	raw, err := withStatus(answered(r, object), status)
	if err != nil {
		return err
	}
	return h.Codec.Encoder(form, r.Type).Object(w, h.Vocabulary.Behaviour.CreatedStatus, services.Object{JSON: raw})
}

// readObject decodes the review and drops or rejects its unknown fields.
func (h *Handlers) readObject(w http.ResponseWriter, r *request.Request, validation schema.FieldValidation, call *admit.Call) (map[string]any, error) {
	sent, err := r.ReadBody(w)
	if err != nil {
		return nil, err
	}
	body, err := h.Codec.Decode(r.Header.Get("Content-Type"), sent, r.Type, r.Charge)
	if err != nil {
		return nil, err
	}
	warnings, err := r.Engine.Schemas.Prepare(r.Context(), r.Type, body.Object, validation, body.Strict...)
	call.Warn(warnings...)
	if err != nil {
		return nil, err
	}
	return body.Object, settleNamespace(r, body.Object)
}

// answer runs mutating admission, validation and validating admission on the review, and
// then evaluates it. It returns the review after mutation, and its status.
func (h *Handlers) answer(r *request.Request, object map[string]any, call *admit.Call,
	read func(*request.Request, []byte) (question, error)) (map[string]any, any, error) {
	name := tree.Text(object, "metadata", "name")
	review := call.Review(admit.Subject{Operation: services.OperationCreate, Type: r.Type, Namespace: r.Namespace, Name: name})
	object, raw, err := mutate(r, review, object)
	if err != nil {
		return nil, nil, err
	}
	ask, err := read(r, raw)
	if err != nil {
		return nil, nil, err
	}
	if err := review.Validate(r.Context(), admit.Object{JSON: raw}); err != nil {
		return nil, nil, err
	}
	status, err := ask(r.Context())
	return object, status, err
}

// mutate runs mutating admission. It returns the resulting review and its JSON.
func mutate(r *request.Request, review *admit.Review, object map[string]any) (map[string]any, []byte, error) {
	raw, err := tree.Encode(object)
	if err != nil {
		return nil, nil, err
	}
	changed, err := review.Mutate(r.Context(), admit.Object{JSON: raw})
	if err != nil || changed == nil {
		return object, raw, err
	}
	mutated, err := tree.Decode(changed)
	if err != nil {
		return nil, nil, err
	}
	if err := typesystem.CheckIdentity(object, mutated); err != nil {
		return nil, nil, err
	}
	// Unknown fields that admission adds are dropped without a warning, since the client
	// did not send them.
	if _, err := r.Engine.Schemas.Prepare(r.Context(), r.Type, mutated, schema.Ignore); err != nil {
		return nil, nil, err
	}
	if err := settleNamespace(r, mutated); err != nil {
		return nil, nil, err
	}
	raw, err = tree.Encode(mutated)
	return mutated, raw, err
}

// settleNamespace sets the namespace of a review to that of the path. It returns
// BadRequest (400) if the review has another one. Cluster-scoped reviews have none.
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

// answered returns the object that the status is added to. As in Kubernetes, the answers to
// questions of callers about themselves repeat nothing that was sent.
func answered(r *request.Request, sent map[string]any) map[string]any {
	blank := map[string]any{"apiVersion": sent["apiVersion"], "kind": sent["kind"]}
	switch r.Type.Resource {
	case "selfsubjectreviews":
		blank["metadata"] = map[string]any{"creationTimestamp": time.Now().UTC().Format(time.RFC3339)}
	case "selfsubjectrulesreviews":
		blank["metadata"], blank["spec"] = map[string]any{}, map[string]any{}
	default:
		return sent
	}
	return blank
}

// withStatus sets the status of an object and returns its JSON.
func withStatus(object map[string]any, status any) ([]byte, error) {
	object["status"] = status
	return json.Marshal(object)
}

// readSpec decodes the spec of a review, which Prepare has validated.
func readSpec[T any](raw []byte) (T, error) {
	var object struct {
		Spec T `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return object.Spec, services.BadRequest("spec: %v", err)
	}
	return object.Spec, nil
}

// reviewToken reads a TokenReview (section "TokenReview").
func (h *Handlers) reviewToken(_ *request.Request, raw []byte) (question, error) {
	spec, err := readSpec[authenticationv1.TokenReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if spec.Token == "" {
		return nil, services.BadRequest("token is required for TokenReview in authentication")
	}
	return func(ctx context.Context) (any, error) { return h.tokenStatus(ctx, spec) }, nil
}

// tokenStatus authenticates the token of a review.
func (h *Handlers) tokenStatus(ctx context.Context, spec authenticationv1.TokenReviewSpec) (any, error) {
	a, err := h.Authn.Authenticate(ctx, services.Credentials{BearerToken: spec.Token, Audiences: spec.Audiences})
	if services.IsReason(err, services.ReasonUnauthorized) {
		return authenticationv1.TokenReviewStatus{Error: why(err)}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(spec.Audiences) == 0 && !h.Vocabulary.Behaviour.NameOwnAudiences {
		a.Audiences = nil
	}
	return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: a.Audiences, User: userInfo(a.User)}, nil
}

// reviewSelf answers with the user of the request.
func (h *Handlers) reviewSelf(r *request.Request, _ []byte) (question, error) {
	return func(context.Context) (any, error) {
		return authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(r.User)}, nil
	}, nil
}

func userInfo(u services.UserInfo) authenticationv1.UserInfo {
	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range u.Extra {
		extra[key] = values
	}
	return authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: extra}
}

// why returns why a token is invalid, which most authenticators do not report.
func why(err error) string {
	if message := services.AsStatus(err).Message; message != "" && message != string(services.ReasonUnauthorized) {
		return message
	}
	return "invalid bearer token"
}

// accessSpec is the spec of the access reviews of all versions: in v1beta1 the field with
// the groups has another name.
type accessSpec struct {
	authorizationv1.SubjectAccessReviewSpec
	Group []string `json:"group"`
}

func (h *Handlers) reviewSubjectAccess(r *request.Request, raw []byte) (question, error) {
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
	explain := request.BoolOption(r.Query, "explain")
	return func(ctx context.Context) (any, error) {
		status, decision, err := h.accessStatus(ctx, user, spec.SubjectAccessReviewSpec)
		if explain {
			status.Reason = explained(decision)
		}
		return status, err
	}, nil
}

// explained returns the reason of a decision with the rule that allowed the request, or came
// closest to it. It is for callers who may ask about others.
func explained(d services.Decision) string {
	switch {
	case d.Rule != "":
		return d.Reason + ", by the rule: " + d.Rule
	case d.Miss != "" && d.Reason != "":
		return d.Reason + ", nearest miss: " + d.Miss
	case d.Miss != "":
		return "nearest miss: " + d.Miss
	}
	return d.Reason
}

func (h *Handlers) reviewSelfAccess(r *request.Request, raw []byte) (question, error) {
	spec, err := readSpec[authorizationv1.SubjectAccessReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if err := checkAccess(r, raw, spec); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		status, _, err := h.accessStatus(ctx, r.User, spec)
		return status, err
	}, nil
}

// accessStatus authorizes the request that an access review describes.
func (h *Handlers) accessStatus(ctx context.Context, user services.UserInfo, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, services.Decision, error) {
	a, ignored := services.Attributes{User: user}, ""
	if res, path := spec.ResourceAttributes, spec.NonResourceAttributes; path != nil {
		a.Verb, a.Path = path.Verb, path.Path
	} else {
		a.Verb, a.Group, a.Version, a.Resource, a.Subresource = res.Verb, res.Group, res.Version, res.Resource, res.Subresource
		a.Namespace, a.Name = res.Namespace, res.Name
		a.FieldSelector, a.LabelSelector, ignored = selectors(res)
	}
	decision, err := h.Authz.Authorize(ctx, a)
	if ignored != "" {
		decision.EvaluationError = strings.TrimPrefix(decision.EvaluationError+"; "+ignored, "; ")
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Denied: decision.Denied,
		Reason: decision.Reason, EvaluationError: decision.EvaluationError}, decision, err
}

func (h *Handlers) reviewSelfRules(r *request.Request, raw []byte) (question, error) {
	spec, err := readSpec[authorizationv1.SelfSubjectRulesReviewSpec](raw)
	if err != nil {
		return nil, err
	}
	if spec.Namespace == "" {
		return nil, services.BadRequest("no namespace on request")
	}
	query := services.RulesRequest{User: r.User, Namespace: spec.Namespace}
	return func(ctx context.Context) (any, error) { return h.rulesStatus(ctx, query) }, nil
}

// rulesStatus lists the rules of a user in a namespace.
func (h *Handlers) rulesStatus(ctx context.Context, query services.RulesRequest) (any, error) {
	rules, err := h.Authz.Rules(ctx, query)
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
