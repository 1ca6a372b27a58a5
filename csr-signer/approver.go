package csrsigner

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/portico-platform/portico/csr-signer/internal/profile"
	"github.com/portico-platform/portico/services/vocabulary"
)

// recheckAfter is the pause before the permission of a requester is checked again: it may
// be granted later.
const recheckAfter = 30 * time.Second

// approver approves requests for client certificates of nodes if the requester has the
// permission (section "Built-in signers"). Nothing else is approved automatically.
type approver struct {
	requests   dynamic.ResourceInterface
	reviews    dynamic.ResourceInterface // SubjectAccessReviews
	profile    profile.Profile           // of signer
	signer     string
	vocabulary vocabulary.Vocabulary
	denied     *denials
	log        *slog.Logger
}

const (
	// deniedFor is how long all requests of a requester share the answer that it does not have the
	// permission. It is short, because the next request may follow on a new binding.
	deniedFor = time.Second
	// maxDenied bounds the requesters that are remembered.
	maxDenied = 1000
)

// denials remembers who did not have a permission, so that many requests of one requester, each of which
// is checked again and again, cost one question.
type denials struct {
	until *lru.Cache
	clock clock.PassiveClock
}

func newDenials(now clock.PassiveClock) *denials { return &denials{lru.New(maxDenied), now} }

func (d *denials) add(question [sha256.Size]byte) {
	d.until.Add(question, d.clock.Now().Add(deniedFor))
}

func (d *denials) has(question [sha256.Size]byte) bool {
	until, ok := d.until.Get(question)
	left := time.Duration(0)
	if ok {
		left = until.(time.Time).Sub(d.clock.Now())
	}
	return left > 0 && left <= deniedFor // later is of a clock that went back
}

// decide approves a request if its requester has the permission. It returns the pause
// before the request is to be checked again, 0 for never.
func (a *approver) decide(ctx context.Context, object *unstructured.Unstructured, csr signingRequest) (time.Duration, error) {
	if csr.Spec.SignerName != a.signer {
		return 0, nil
	}
	text, err := base64.StdEncoding.DecodeString(csr.Spec.Request)
	if err != nil {
		return 0, nil // the API does not admit such an object
	}
	request, err := profile.Parse(text)
	if err != nil {
		return 0, nil //nolint:nilerr // a request that is never signed needs no approval
	}
	if _, err := a.profile.Template(request, csr.Spec.Usages); err != nil {
		return 0, nil //nolint:nilerr // it does not meet the conditions of the signer
	}
	permissions := []string{"nodeclient"}
	if request.Subject.CommonName == csr.Spec.Username {
		permissions = []string{"selfnodeclient", "nodeclient"}
	}
	for _, permission := range permissions {
		switch allowed, err := a.allowed(ctx, csr, permission); {
		case err != nil:
			return 0, err
		case allowed:
			return 0, a.approve(ctx, object, permission)
		}
	}
	return recheckAfter, nil
}

// allowed reports whether the requester may create certificatesigningrequests with a
// subresource that names a kind of certificate.
func (a *approver) allowed(ctx context.Context, csr signingRequest, permission string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range csr.Spec.Extra {
		extra[key] = values
	}
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: a.vocabulary.Group("authorization.") + "/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: a.vocabulary.Group("certificates."),
				Resource: "certificatesigningrequests", Subresource: permission, Verb: "create"}},
	}
	text, err := json.Marshal(review.Spec)
	if err != nil {
		return false, err
	}
	asked := sha256.Sum256(text)
	if a.denied.has(asked) {
		return false, nil
	}
	question, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&review)
	if err != nil {
		return false, err
	}
	answer, err := a.reviews.Create(ctx, &unstructured.Unstructured{Object: question}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	if err == nil && !allowed {
		a.denied.add(asked)
	}
	return allowed, err
}

// approve adds the condition Approved.
func (a *approver) approve(ctx context.Context, object *unstructured.Unstructured, permission string) error {
	approved := object.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(approved.Object, "status", "conditions")
	if err != nil {
		return err
	}
	conditions = append(conditions, map[string]any{"type": "Approved", "status": "True", "reason": "AutoApproved",
		"message": "The sender may create certificatesigningrequests/" + permission + "."})
	if err := unstructured.SetNestedSlice(approved.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	_, err = a.requests.Update(ctx, approved, metav1.UpdateOptions{}, "approval")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the informer delivers its next state
	}
	if err == nil {
		a.log.Info("approved", "request", object.GetName(), "permission", permission)
	}
	return err
}
