// Package remote asks a service outside of the suite for decisions, with
// SubjectAccessReviews over HTTPS, and caches its answers. It decides nothing itself. It
// serves section "Authorization notes" of the specification.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kubeconfig"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/kit/webhooks"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	// Timeout bounds one call, unless the configuration has a shorter one.
	Timeout = 30 * time.Second
	// firstPause is the pause before the first retry.
	firstPause = 500 * time.Millisecond
	// maxCached bounds the cached answers, and maxQuestion the size of the question and of the answer of
	// each, in bytes: users choose what their requests contain.
	maxCached   = 8192
	maxQuestion = 10_000
)

// Config configures a Webhook.
type Config struct {
	File       string // a kubeconfig
	APIVersion string // of the SubjectAccessReview, with its group
	// AllowedTTL and DeniedTTL are how long answers are cached; 0: they are not.
	AllowedTTL, DeniedTTL time.Duration
	// Timeout bounds one call.
	Timeout time.Duration
	// Conditions select the requests that the service is asked about; nil: all.
	Conditions *authorizationcel.CELMatcher
	// Selectors are sent with requests; the service of a release before 1.36 gets none.
	Selectors bool
	// DenyFailures denies requests while the service gives no answer, or if a condition
	// cannot be evaluated. Otherwise Authorize returns an error.
	DenyFailures bool
}

// Webhook implements services.Authz.
type Webhook struct {
	config Config
	client *webhook.Client
	cached *cache.LRUExpireCache // of [sha256.Size]byte to status
}

// New returns a webhook. It returns an error if the file cannot be used.
func New(c Config) (*Webhook, error) {
	file, err := kubeconfig.Read(c.File)
	if err != nil {
		return nil, err
	}
	to, err := file.Remote()
	if err != nil {
		return nil, err
	}
	client := webhook.NewClients(webhook.Settings{Caller: webhooks.Caller("authz")}).New(to)
	return &Webhook{config: c, client: client, cached: cache.NewLRUExpireCache(maxCached)}, nil
}

// review is a SubjectAccessReview of v1beta1 or v1.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       spec   `json:"spec"`
	Status     status `json:"status"`
}

type spec struct {
	Resource    *resourceAttributes    `json:"resourceAttributes,omitempty"`
	NonResource *nonResourceAttributes `json:"nonResourceAttributes,omitempty"`
	User        string                 `json:"user,omitempty"`
	UID         string                 `json:"uid,omitempty"`
	// Groups has another name in v1beta1.
	Groups        []string            `json:"groups,omitempty"`
	GroupsV1beta1 []string            `json:"group,omitempty"`
	Extra         map[string][]string `json:"extra,omitempty"`
}

type resourceAttributes struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`

	FieldSelector *authorizationv1.FieldSelectorAttributes `json:"fieldSelector,omitempty"`
	LabelSelector *authorizationv1.LabelSelectorAttributes `json:"labelSelector,omitempty"`
}

type nonResourceAttributes struct {
	Path string `json:"path,omitempty"`
	Verb string `json:"verb,omitempty"`
}

type status struct {
	Allowed         bool   `json:"allowed"`
	Denied          bool   `json:"denied"`
	Reason          string `json:"reason"`
	EvaluationError string `json:"evaluationError"`
}

// Authorize implements services.Authz. It returns an error while the service gives no
// answer, unless failures deny: then also when the request ends, because a client that
// chose a short timeout must not get past the service.
func (w *Webhook) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	d, err := w.authorize(ctx, a)
	if err != nil && w.config.DenyFailures {
		return services.Decision{Denied: true, Reason: "the authorization webhook gives no answer", EvaluationError: err.Error()}, nil
	}
	return d, err
}

func (w *Webhook) authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	if selected, err := w.selects(ctx, a); err != nil || !selected {
		return services.Decision{}, err
	}
	q := w.question(a)
	text, err := json.Marshal(q.Spec)
	if err != nil {
		return services.Decision{}, err
	}
	key := sha256.Sum256(text)
	if cached, ok := w.cached.Get(key); ok {
		return cached.(status).decision(), nil
	}
	s, err := w.ask(ctx, q)
	if err != nil {
		return services.Decision{}, err
	}
	ttl := w.config.DeniedTTL
	if s.Allowed {
		ttl = w.config.AllowedTTL
	}
	if ttl > 0 && len(text) <= maxQuestion && len(s.Reason)+len(s.EvaluationError) <= maxQuestion {
		w.cached.Add(key, s, ttl)
	}
	return s.decision(), nil
}

func (w *Webhook) question(a services.Attributes) review {
	q := review{APIVersion: w.config.APIVersion, Kind: "SubjectAccessReview",
		Spec: spec{User: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra}}
	if isBeta(w.config.APIVersion) {
		q.Spec.Groups, q.Spec.GroupsV1beta1 = nil, a.User.Groups
	}
	if a.Path != "" {
		q.Spec.NonResource = &nonResourceAttributes{Path: a.Path, Verb: a.Verb}
	} else {
		q.Spec.Resource = &resourceAttributes{Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Version: a.Version,
			Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}
		q.Spec.Resource.FieldSelector, q.Spec.Resource.LabelSelector = w.selectors(a)
	}
	return q
}

// ask sends a question until there is an answer, or a failure that lasts.
func (w *Webhook) ask(ctx context.Context, q review) (status, error) {
	ctx, span := tracing.StartCall(ctx, "webhook", "authorize")
	var reply review
	err := webhook.Retry(ctx, firstPause, func(ctx context.Context) error {
		reply = review{}
		if err := w.client.Post(ctx, q, &reply, webhook.Limits{Timeout: w.config.Timeout, Text: ledger.DecisionAnswer}); err != nil {
			return err
		}
		if reply.APIVersion != q.APIVersion || reply.Kind != q.Kind {
			return fmt.Errorf("it answered %s of %q, not %s of %q", reply.Kind, reply.APIVersion, q.Kind, q.APIVersion)
		}
		if reply.Status.Allowed && reply.Status.Denied {
			return fmt.Errorf("it both allowed and denied the request")
		}
		return nil
	})
	span.End(err)
	if err != nil {
		return status{}, fmt.Errorf("the authorization webhook: %w", err)
	}
	return reply.Status, nil
}

func (s status) decision() services.Decision {
	return services.Decision{Allowed: s.Allowed, Denied: s.Denied, Reason: s.Reason, EvaluationError: s.EvaluationError}
}

// Rules implements services.Authz: the rules of the service are not known.
func (w *Webhook) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{Incomplete: true, EvaluationError: "webhook authorizer does not support user rule resolution"}, nil
}

var _ services.Authz = (*Webhook)(nil)
