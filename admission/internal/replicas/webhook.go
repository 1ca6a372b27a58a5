package replicas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/portico-platform/portico/admission/internal/admissionreview"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/webhook"
)

// webhookTarget is a service that uses AdmissionReview. Its HTTP client keeps the
// connections.
type webhookTarget struct {
	asker admissionreview.Asker
	name  string
	idle  func()
}

func newWebhookTarget(c Config) *webhookTarget {
	config := webhook.Config{CABundle: c.Trust.CABundle, Identity: webhook.Identity{TLS: c.tlsConfig("")}}
	if s := c.Endpoint.Service; s != nil {
		config.Service = &webhook.Service{Namespace: s.Namespace, Name: s.Name, Port: &s.Port, Path: &s.Path}
	} else {
		config.URL = &c.Endpoint.URL
	}
	client := c.Clients.New(config)
	return &webhookTarget{admissionreview.Asker{Client: client, Version: "v1", Vocabulary: c.Vocabulary, Owner: c.Name}, c.Name, client.CloseIdle}
}

// webhookAddress is the URL without what may be secret in it.
func (p *Pool) webhookAddress() string {
	if s := p.config.Endpoint.Service; s != nil {
		return fmt.Sprintf("%s.%s.svc:%s", s.Name, s.Namespace, s.Port.String())
	}
	u, err := url.Parse(p.config.Endpoint.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// ready is true: HTTP connects when there is a request.
func (t *webhookTarget) ready() bool { return true }

func (t *webhookTarget) close() { t.idle() }

// ask implements target.
func (t *webhookTarget) ask(ctx context.Context, q question) (Answer, error) {
	r := q.request
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return Answer{}, errors.New("the call has no deadline")
	}
	reply, err := t.asker.Ask(ctx, questionOf(r), time.Until(deadline))
	if err != nil {
		return Answer{}, t.failure(ctx, err)
	}
	a := Answer{Warnings: reply.Warnings, Annotations: reply.AuditAnnotations}
	switch {
	case !reply.Allowed:
		a.Refusal = trimmed(admissionreview.Refusal(fmt.Sprintf("admission service %q", t.name), reply.Result))
		return a, nil
	case len(reply.Patch) == 0:
		return a, nil
	case q.phase == Validate:
		return Answer{}, errors.New("it patches the object while validating")
	}
	if a.Object, err = admissionreview.Patched(ctx, r.Object, reply); err != nil {
		return Answer{}, errors.New("its patch cannot be applied: " + jsonpatch.Why(err))
	}
	return a, checkObject(r, a.Object)
}

// questionOf returns the question about a request, which is in the version of the service.
func questionOf(r services.AdmissionRequest) admissionreview.Question {
	about := review.New(r)
	return admissionreview.Question{Review: about, As: about.Own(), Object: r.Object, Old: r.OldObject}
}

// failure marks the lack of an answer with a Status of code 503.
func (t *webhookTarget) failure(ctx context.Context, err error) error {
	var network net.Error
	var status *webhook.StatusError
	switch {
	case ctx.Err() != nil:
		return services.Timeout("it has not responded in time")
	case errors.As(err, new(*ledger.FullError)):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.As(err, &network), errors.As(err, &status) && status.Code >= http.StatusBadGateway && status.Code <= http.StatusGatewayTimeout:
		return services.Unavailable("%v", err)
	}
	return err
}
