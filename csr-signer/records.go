package csrsigner

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/revocation"
)

// keepExpired is how long the record of a certificate is kept after its expiry.
const keepExpired = time.Hour

// The indexes of records: by who asked, by the UID of the request, and by what Revocations can name.
const (
	byRequester = "requester"
	byRequest   = "request"
	bySubject   = "subject"
)

// maxUnpublished bounds the certificates in memory that may not have been published.
const maxUnpublished = 1000

// records are the IssuedCertificates: one for each certificate, from before anybody has it until
// it has expired. The request of a certificate is deleted long before that.
type records struct {
	objects  dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	// limit bounds the certificates of one requester, whose records would otherwise fill the
	// store; 0 for no limit.
	limit int
	// unpublished are certificates, by the UID of the request, that nobody may have got yet. The
	// next attempt publishes them, so that each request has one record however often it fails.
	unpublished *lru.Cache
	clock       clock.PassiveClock
	log         *slog.Logger
}

func newRecords(objects dynamic.ResourceInterface, limit int, now clock.PassiveClock, log *slog.Logger) (*records, error) {
	r := &records{objects: objects, informer: worker.NewInformer(objects, ""), limit: limit, unpublished: lru.New(maxUnpublished), clock: now, log: log}
	indexed := func(keys func(*revocation.Certificate) []string) cache.IndexFunc {
		return func(object any) ([]string, error) {
			certificate, ok := r.decode(object)
			if !ok {
				return nil, nil
			}
			return keys(&certificate), nil
		}
	}
	if err := r.informer.SetTransform(withoutManagers); err != nil {
		return nil, err
	}
	return r, r.informer.AddIndexers(cache.Indexers{
		byRequester: indexed(func(c *revocation.Certificate) []string { return []string{c.Requester} }),
		byRequest:   indexed(func(c *revocation.Certificate) []string { return []string{c.Request.UID} }),
		bySubject:   indexed(func(c *revocation.Certificate) []string { return revocation.Subjects(c.Authentication()) }),
	})
}

// withoutManagers drops what is not needed in memory.
func withoutManagers(object any) (any, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// decode returns the certificate of an object, false if it is not readable.
func (r *records) decode(object any) (revocation.Certificate, bool) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return revocation.Certificate{}, false
	}
	raw, err := o.MarshalJSON()
	if err != nil {
		return revocation.Certificate{}, false
	}
	certificate, err := revocation.DecodeCertificate(raw)
	if err != nil {
		r.log.Warn("an issued certificate is not readable", "name", o.GetName(), "error", err)
	}
	return certificate, err == nil
}

// full reports whether a requester has as many certificates as are allowed.
func (r *records) full(requester string) (bool, error) {
	if r.limit == 0 {
		return false, nil
	}
	names, err := r.informer.GetIndexer().IndexKeys(byRequester, requester)
	return len(names) >= r.limit, err
}

// issued returns the certificate that was issued for a request but may not have been published;
// false if there is none that is still valid.
func (r *records) issued(request types.UID) (*x509.Certificate, bool) {
	known, ok := r.unpublished.Get(request)
	if !ok {
		return nil, false
	}
	certificate := known.(*x509.Certificate)
	return certificate, certificate.NotAfter.After(r.clock.Now())
}

// add records a certificate that was issued for a request. It may be called again.
func (r *records) add(ctx context.Context, request *unstructured.Unstructured, csr signingRequest, issued *x509.Certificate) error {
	record := revocation.Describe(issued)
	record.SignerName, record.Requester = csr.Spec.SignerName, csr.Spec.Username
	record.Request = revocation.Request{Name: request.GetName(), UID: string(request.GetUID())}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&record)
	if err != nil {
		return err
	}
	r.unpublished.Add(request.GetUID(), issued)
	_, err = r.objects.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": revocation.Group + "/" + revocation.Version, "kind": revocation.CertificateKind,
		"metadata": map[string]any{"name": record.Serial}, "spec": spec}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// remove deletes the record of a certificate that nobody has got.
func (r *records) remove(ctx context.Context, request types.UID, issued *x509.Certificate) error {
	err := r.objects.Delete(ctx, issued.SerialNumber.Text(16), metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		r.unpublished.Remove(request)
		return nil
	}
	return err
}

// removeAll deletes the records of all certificates of a request that nobody has got.
func (r *records) removeAll(ctx context.Context, request types.UID) error {
	var errs []error
	if known, ok := r.unpublished.Get(request); ok {
		errs = append(errs, r.remove(ctx, request, known.(*x509.Certificate)))
	}
	// Those of earlier processes; the index may not have the newest yet.
	found, err := r.informer.GetIndexer().ByIndex(byRequest, string(request))
	errs = append(errs, err)
	for _, object := range found {
		if certificate, ok := r.decode(object); ok {
			err := r.objects.Delete(ctx, certificate.Serial, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// reconcile deletes the record of a certificate that has expired. It returns the time until
// then.
func (r *records) reconcile(ctx context.Context, object *unstructured.Unstructured) (time.Duration, error) {
	certificate, ok := r.decode(object)
	if !ok {
		return 0, nil
	}
	if left := certificate.NotAfter.Add(keepExpired).Sub(r.clock.Now()); left > 0 {
		return left, nil
	}
	uid := object.GetUID()
	err := r.objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	return 0, err
}

// Certificate implements responder.Source.
func (r *records) Certificate(serial string) (revocation.Certificate, bool) {
	object, found, err := r.informer.GetIndexer().GetByKey(serial)
	if err != nil || !found {
		return revocation.Certificate{}, false
	}
	return r.decode(object)
}

// Named implements responder.Source.
func (r *records) Named(subject string) (certificates []revocation.Certificate) {
	objects, err := r.informer.GetIndexer().ByIndex(bySubject, subject)
	if err != nil {
		return nil // there is no such index
	}
	for _, object := range objects {
		if certificate, ok := r.decode(object); ok {
			certificates = append(certificates, certificate)
		}
	}
	return certificates
}
