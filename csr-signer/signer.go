package csrsigner

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/csr-signer/internal/profile"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/worker"
)

// keepFor is how long a request is kept after the last change of its conditions.
const keepFor = time.Hour

// signer signs approved requests of the built-in signers, and deletes old requests.
type signer struct {
	requests  dynamic.ResourceInterface
	profiles  map[string]profile.Profile
	authority *authority // nil: nothing is signed
	records   *records   // of what the authority issues
	cleans    bool
	approver  *approver // nil: requests are not approved automatically
	clock     clock.PassiveClock
	log       *slog.Logger
}

// controller reconciles the requests of an informer.
func (s *signer) controller(informer cache.SharedIndexInformer, now clock.WithTicker) worker.Controller {
	return worker.Controller{Name: signing, Informer: informer, Reconcile: s.reconcile, Tenant: requester, Clock: now, Log: s.log}
}

// requester returns who has created a request. The accounts of a namespace count as one, because
// who has a namespace can create any number of them.
func requester(object *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "username")
	if account, ok := strings.CutPrefix(name, services.UserServiceAccountStart); ok {
		namespace, _, _ := strings.Cut(account, ":")
		return services.UserServiceAccountStart + namespace
	}
	return name
}

// signingRequest is the part of a CertificateSigningRequest that the worker reads.
type signingRequest struct {
	Spec struct {
		Request    string   `json:"request"`
		SignerName string   `json:"signerName"`
		Usages     []string `json:"usages"`
		// ExpirationSeconds is the lifetime that the requester wants; 0 for any.
		ExpirationSeconds int32 `json:"expirationSeconds"`
		// The requester.
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

// reconcile approves a request if that is automatic, signs it if it is approved, and
// deletes it if it is old. It returns the time until it is to be called again, 0 for the
// next change of the request.
func (s *signer) reconcile(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error) {
	var csr signingRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &csr); err != nil {
		s.log.Warn("a certificate signing request cannot be read", "request", object.GetName(), "error", err)
		return 0, nil
	}
	recheck, failed := s.advance(ctx, object, csr)
	if !s.cleans {
		return recheck, failed
	}
	if left := csr.lastChange(object.GetCreationTimestamp().Time).Add(keepFor).Sub(s.clock.Now()); left > 0 {
		if recheck > 0 {
			left = min(left, recheck)
		}
		return left, failed
	}
	// An old request goes even if it cannot be approved or signed: that may never change.
	return 0, errors.Join(failed, s.delete(ctx, object, csr))
}

// advance approves or signs a request if that is due. It returns the pause before it is to be called
// again, 0 for never.
func (s *signer) advance(ctx context.Context, object *unstructured.Unstructured, csr signingRequest) (time.Duration, error) {
	switch {
	case s.approver != nil && csr.undecided():
		return s.approver.decide(ctx, object, csr)
	case s.authority != nil && csr.needsSignature():
		if p, ours := s.profiles[csr.Spec.SignerName]; ours {
			return s.sign(ctx, object, csr, p)
		}
	}
	return 0, nil
}

// delete deletes a request that has not changed. If it was never given a certificate, the records
// of those that were issued for it go too.
func (s *signer) delete(ctx context.Context, object *unstructured.Unstructured, csr signingRequest) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := s.requests.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err == nil && csr.Status.Certificate == "" && s.records != nil {
		if err := s.records.removeAll(ctx, uid); err != nil { // the request is gone: nothing tries again
			s.log.Warn("records of certificates that nobody has got are left", "request", object.GetName(), "error", err)
		}
	}
	return err
}

// needsSignature reports whether the request is approved and neither denied, failed nor
// signed.
func (c *signingRequest) needsSignature() bool {
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

// undecided reports whether the request is neither approved, denied nor signed.
func (c *signingRequest) undecided() bool {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Approved" || condition.Type == "Denied" {
			return false
		}
	}
	return c.Status.Certificate == ""
}

// lastChange returns the time of the last change of a condition, or of the creation.
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

// sign issues the certificate of a request. It returns the pause before it is to be called again,
// 0 for never. A request that does not meet the signer's conditions fails.
func (s *signer) sign(ctx context.Context, object *unstructured.Unstructured, csr signingRequest, p profile.Profile) (time.Duration, error) {
	if !s.records.informer.HasSynced() {
		return 0, worker.ErrLater
	}
	log := s.log.With("request", object.GetName(), "signer", csr.Spec.SignerName)
	certificate, again := s.records.issued(object.GetUID())
	if !again {
		full, err := s.records.full(csr.Spec.Username)
		if err != nil {
			return 0, err
		}
		if full {
			log.Warn("not signed: the requester has as many certificates as --max-certificates-per-requester allows", "requester", csr.Spec.Username)
			return recheckAfter, nil
		}
		request, template, err := wanted(csr, p)
		if err != nil {
			return 0, s.fail(ctx, object, err)
		}
		if certificate, err = s.authority.issue(template, request, time.Duration(csr.Spec.ExpirationSeconds)*time.Second); err != nil {
			return 0, err
		}
	}
	// It is recorded before anybody has it: what nobody knows of could not be revoked.
	if err := s.records.add(ctx, object, csr, certificate); err != nil {
		if apierrors.IsInvalid(err) {
			s.records.unpublished.Remove(object.GetUID())
			return 0, s.fail(ctx, object, err)
		}
		return 0, err
	}
	err := s.publish(ctx, object, certificate)
	if err == nil {
		s.records.unpublished.Remove(object.GetUID())
		log.Info("signed", "serial", certificate.SerialNumber.Text(16))
		return 0, nil
	}
	var left error
	if refused(err) && !again { // otherwise an earlier attempt may have succeeded
		left = s.records.remove(ctx, object.GetUID(), certificate)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // the informer delivers the next state of the request
	}
	return 0, errors.Join(err, left)
}

// maxReason bounds the text of a condition, in bytes.
const maxReason = 1 << 10

// fail gives a request that is refused for good the condition Failed, so that nobody waits for its certificate.
func (s *signer) fail(ctx context.Context, object *unstructured.Unstructured, why error) error {
	s.log.Warn("not signed", "request", object.GetName(), "error", why)
	message := why.Error()
	if len(message) > maxReason {
		message = strings.ToValidUTF8(message[:maxReason], "") + "..."
	}
	failed := object.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(failed.Object, "status", "conditions")
	if err != nil {
		return err
	}
	conditions = append(conditions, map[string]any{"type": "Failed", "status": "True", "reason": "SignerValidationFailure",
		"message": message, "lastUpdateTime": s.clock.Now().UTC().Format(time.RFC3339)})
	if err := unstructured.SetNestedSlice(failed.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	_, err = s.requests.UpdateStatus(ctx, failed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the informer delivers the next state of the request
	}
	return err
}

// publish writes the certificate into the status of its request.
func (s *signer) publish(ctx context.Context, object *unstructured.Unstructured, certificate *x509.Certificate) error {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	signed := object.DeepCopy()
	if err := unstructured.SetNestedField(signed.Object, base64.StdEncoding.EncodeToString(text), "status", "certificate"); err != nil {
		return err
	}
	_, err := s.requests.UpdateStatus(ctx, signed, metav1.UpdateOptions{})
	return err
}

// refused reports whether the API has certainly not made a change. Its own failures and those of
// what is between leave that open.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 && status.Status().Code != http.StatusRequestTimeout
}

// wanted returns what a request asks for and the certificate for it; an error if the request does
// not meet the conditions of its signer.
func wanted(csr signingRequest, p profile.Profile) (*x509.CertificateRequest, *x509.Certificate, error) {
	text, err := base64.StdEncoding.DecodeString(csr.Spec.Request)
	if err != nil {
		return nil, nil, err
	}
	request, err := profile.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	template, err := p.Template(request, csr.Spec.Usages)
	return request, template, err
}
