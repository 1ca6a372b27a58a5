// Package images asks a remote service whether the images of a pod may be used, and
// keeps its answers for a while. It decides what the service's silence means; which
// images are good is up to the service. It serves ImagePolicyWebhook under "Admission
// plugins" of the specification.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// askWithin bounds one question.
	askWithin = 30 * time.Second
	// maxKept bounds how many answers are kept.
	maxKept = 1024
)

// Plugin asks about the images of pods.
type Plugin struct {
	config     Config
	vocabulary vocabulary.Vocabulary
	log        *slog.Logger
	client     *webhook.Client
	kept       *cache.LRUExpireCache // of [sha256.Size]byte to ImageReviewStatus
}

// New returns the plugin with a configuration.
func New(c Config, v vocabulary.Vocabulary, log *slog.Logger) *Plugin {
	return &Plugin{config: c, vocabulary: v, log: log, client: webhook.NewClients(webhook.Settings{Caller: webhooks.Caller("admission")}).New(c.Remote), kept: cache.NewLRUExpireCache(maxKept)}
}

// Validate refuses with Forbidden (403) pods with images that the service refuses, and
// all pods while there is no answer, unless the configuration allows them then.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "pods") && !r.Is(services.OperationUpdate, "", "pods") {
		return nil
	}
	question, err := p.question(r)
	if err != nil {
		return err
	}
	status, err := p.status(ctx, question)
	prefix := "imagepolicywebhook." + p.vocabulary.Group("image-policy.") + "/"
	switch {
	case err != nil && deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	case err != nil && !p.config.DefaultAllow:
		return r.Forbid("%v", err)
	case err != nil:
		p.log.Warn("the image policy webhook does not respond, and the images are allowed", "error", err)
		r.Annotate(map[string]string{prefix + "failed-open": "true"})
		return nil
	}
	for key, value := range status.AuditAnnotations {
		if len(validation.IsQualifiedName(prefix+key)) == 0 {
			r.AnnotateFrom(strings.TrimSuffix(prefix, "/"), map[string]string{key: value})
		}
	}
	switch {
	case status.Allowed:
		return nil
	case status.Reason != "":
		return r.Forbid("image policy webhook backend denied one or more images: %s", status.Reason)
	}
	return r.Forbid("one or more images rejected by webhook backend")
}

// question returns the review of a pod: its images, and the annotations that are
// for the service.
func (p *Plugin) question(r *review.Review) (*imagepolicyv1alpha1.ImageReview, error) {
	object, err := r.Current()
	if err != nil {
		return nil, err
	}
	var pod struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers     []imagepolicyv1alpha1.ImageReviewContainerSpec `json:"containers"`
			InitContainers []imagepolicyv1alpha1.ImageReviewContainerSpec `json:"initContainers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object, &pod); err != nil {
		return nil, services.BadRequest("the pod is not readable: %v", err)
	}
	q := &imagepolicyv1alpha1.ImageReview{Spec: imagepolicyv1alpha1.ImageReviewSpec{
		Containers: append(pod.Spec.Containers, pod.Spec.InitContainers...), Annotations: map[string]string{}, Namespace: r.Namespace}}
	q.Kind, q.APIVersion = "ImageReview", p.vocabulary.Group("imagepolicy.")+"/v1alpha1"
	part := "." + p.vocabulary.Group("image-policy.") + "/"
	for key, value := range pod.Metadata.Annotations {
		if strings.Contains(key, part) {
			q.Spec.Annotations[key] = value
		}
	}
	return q, nil
}

// status returns the answer to a question, of now or of not long ago.
func (p *Plugin) status(ctx context.Context, question *imagepolicyv1alpha1.ImageReview) (imagepolicyv1alpha1.ImageReviewStatus, error) {
	spec, err := json.Marshal(question.Spec)
	if err != nil {
		return imagepolicyv1alpha1.ImageReviewStatus{}, err
	}
	key := sha256.Sum256(spec)
	if kept, ok := p.kept.Get(key); ok {
		return kept.(imagepolicyv1alpha1.ImageReviewStatus), nil
	}
	status, err := p.ask(ctx, question)
	if err != nil {
		return status, err
	}
	ttl := p.config.DenyTTL
	if status.Allowed {
		ttl = p.config.AllowTTL
	}
	if ttl > 0 {
		p.kept.Add(key, status, ttl)
	}
	return status, nil
}

// ask asks until there is an answer or a failure that lasts.
func (p *Plugin) ask(ctx context.Context, question *imagepolicyv1alpha1.ImageReview) (imagepolicyv1alpha1.ImageReviewStatus, error) {
	var reply imagepolicyv1alpha1.ImageReview
	err := webhook.Retry(ctx, p.config.RetryBackoff, func(ctx context.Context) error {
		reply = imagepolicyv1alpha1.ImageReview{}
		if err := p.client.Post(ctx, question, &reply, webhook.Limits{Timeout: askWithin, Text: ledger.DecisionAnswer}); err != nil {
			return err
		}
		if reply.TypeMeta != question.TypeMeta {
			return fmt.Errorf("it returned %s of %q, not %s of %q", reply.Kind, reply.APIVersion, question.Kind, question.APIVersion)
		}
		return nil
	})
	if err != nil {
		return imagepolicyv1alpha1.ImageReviewStatus{}, fmt.Errorf("the image policy webhook: %w", err)
	}
	return reply.Status, nil
}
