package csrsigner

import (
	"context"
	"encoding/base64"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/csr-signer/internal/profile"
)

// keepFor is how long a request stays after its last change of state.
const keepFor = time.Hour

// signer signs approved requests for the built-in signers, and deletes requests
// about which nothing has happened for long.
type signer struct {
	requests  dynamic.ResourceInterface
	profiles  map[string]profile.Profile
	authority *authority // nil: requests are only cleaned up
	cleans    bool
	approver  *approver // nil: requests are not approved automatically
	clock     clock.PassiveClock
	log       *slog.Logger
}

// signingRequest is the part of a CertificateSigningRequest that the worker reads.
type signingRequest struct {
	Spec struct {
		Request    string   `json:"request"`
		SignerName string   `json:"signerName"`
		Usages     []string `json:"usages"`
		// Who asks.
		Username string              `json:"username"`
		UID      string              `json:"uid"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"spec"`
	Status struct {
		Certificate string `json:"certificate"`
		Conditions  []struct {
			Type               string      `json:"type"`
			LastUpdateTime     metav1.Time `json:"lastUpdateTime"`
			LastTransitionTime metav1.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// reconcile approves what may be approved automatically, signs what is approved, and
// otherwise waits until a request is old.
func (s *signer) reconcile(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error) {
	var csr signingRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &csr); err != nil {
		s.log.Warn("a certificate signing request cannot be read", "request", object.GetName(), "error", err)
		return 0, nil
	}
	var ask time.Duration // until the approver wants to see it again
	if s.approver != nil && csr.undecided() {
		var err error
		if ask, err = s.approver.decide(ctx, object, csr); err != nil {
			return 0, err
		}
	}
	if csr.wantsSignature() && s.authority != nil {
		if p, ours := s.profiles[csr.Spec.SignerName]; ours {
			if err := s.sign(ctx, object, csr, p); err != nil {
				return 0, err
			}
		}
	}
	if !s.cleans {
		return ask, nil
	}
	if left := csr.lastChange(object.GetCreationTimestamp().Time).Add(keepFor).Sub(s.clock.Now()); left > 0 {
		if ask > 0 {
			left = min(left, ask)
		}
		return left, nil
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := s.requests.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	return 0, err
}

// wantsSignature reports whether the request is approved and neither denied, failed
// nor signed already.
func (c *signingRequest) wantsSignature() bool {
	approved := false
	for _, condition := range c.Status.Conditions {
		switch condition.Type {
		case "Approved":
			approved = true
		case "Denied", "Failed":
			return false
		}
	}
	return approved && c.Status.Certificate == ""
}

// undecided reports whether nobody has approved, denied or signed the request.
func (c *signingRequest) undecided() bool {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Approved" || condition.Type == "Denied" {
			return false
		}
	}
	return c.Status.Certificate == ""
}

// lastChange returns when the state of the request changed last.
func (c *signingRequest) lastChange(created time.Time) time.Time {
	last := created
	for _, condition := range c.Status.Conditions {
		for _, at := range []metav1.Time{condition.LastUpdateTime, condition.LastTransitionTime} {
			if at.After(last) {
				last = at.Time
			}
		}
	}
	return last
}

// sign issues the certificate of a request. One that does not meet the signer's
// conditions is told of in the log only.
func (s *signer) sign(ctx context.Context, object *unstructured.Unstructured, csr signingRequest, p profile.Profile) error {
	log := s.log.With("request", object.GetName(), "signer", csr.Spec.SignerName)
	text, err := base64.StdEncoding.DecodeString(csr.Spec.Request)
	if err != nil {
		log.Warn("not signed", "error", err)
		return nil
	}
	request, err := profile.Parse(text)
	if err != nil {
		log.Warn("not signed", "error", err)
		return nil
	}
	template, err := p.Template(request, csr.Spec.Usages)
	if err != nil {
		log.Warn("not signed", "error", err)
		return nil
	}
	certificate, err := s.authority.issue(template, request)
	if err != nil {
		return err
	}
	signed := object.DeepCopy()
	encoded := base64.StdEncoding.EncodeToString(certificate)
	if err := unstructured.SetNestedField(signed.Object, encoded, "status", "certificate"); err != nil {
		return err
	}
	_, err = s.requests.UpdateStatus(ctx, signed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // its next state comes by itself
	}
	if err == nil {
		log.Info("signed")
	}
	return err
}
