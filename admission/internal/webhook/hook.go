package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/webhook"
)

// Configuration is a stored webhook configuration of either kind.
type Configuration struct {
	hooks []*hook
}

// hook is one parsed webhook of a configuration.
type hook struct {
	configuration, name string
	rules               []admissionregistrationv1.RuleWithOperations
	namespaces, objects labels.Selector
	conditions          []cel.MatchCondition
	// equivalent is matchPolicy Equivalent: the rules match all groups and versions that
	// serve the named resources.
	equivalent bool
	// failOpen is failurePolicy Ignore: requests are admitted if the call fails.
	failOpen bool
	// dryRunSafe means that the webhook has no side effects in a dry run.
	dryRunSafe bool
	// reinvoke is reinvocationPolicy IfNeeded: the webhook is called again if the object
	// has changed since its first call.
	reinvoke bool
	timeout  time.Duration
	version  string // of the AdmissionReview; empty if the webhook supports neither v1 nor v1beta1
	client   *webhook.Client
}

func (h *hook) key() string { return h.configuration + "/" + h.name }

// Parser returns a parser of stored configurations. The resolver finds the addresses of
// Services that webhooks name; identities are the client credentials for each webhook.
func Parser(find webhook.Resolver, identities Identities) func(services.Object) (Configuration, error) {
	return func(o services.Object) (Configuration, error) {
		var stored struct {
			// A validating webhook has all fields of a mutating one except reinvocationPolicy.
			Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
		}
		if err := json.Unmarshal(o.JSON, &stored); err != nil {
			return Configuration{}, err
		}
		var c Configuration
		for _, w := range stored.Webhooks {
			hook, err := newHook(o.Key.Name, &w, func(c webhook.Config) *webhook.Client {
				c.Identity = identities.of(c)
				return webhook.New(c, find, webhook.Caller{Agent: "portico-admission", Trace: tracing.ToHeader})
			})
			if err != nil {
				return c, fmt.Errorf("webhook %q: %w", w.Name, err)
			}
			c.hooks = append(c.hooks, hook)
		}
		return c, nil
	}
}

func newHook(configuration string, w *admissionregistrationv1.MutatingWebhook, connect func(webhook.Config) *webhook.Client) (*hook, error) {
	h := &hook{configuration: configuration, name: w.Name, rules: w.Rules, timeout: 10 * time.Second,
		equivalent: w.MatchPolicy == nil || *w.MatchPolicy == admissionregistrationv1.Equivalent,
		failOpen:   w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore,
		reinvoke:   w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy,
		client:     connect(clientConfig(w.ClientConfig)),
	}
	if w.TimeoutSeconds != nil {
		h.timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	if w.SideEffects != nil {
		h.dryRunSafe = *w.SideEffects == admissionregistrationv1.SideEffectClassNone || *w.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	for _, version := range w.AdmissionReviewVersions {
		if version == "v1" || version == "v1beta1" {
			h.version = version
			break
		}
	}
	var err error
	if h.namespaces, err = selector(w.NamespaceSelector); err != nil {
		return nil, err
	}
	for _, c := range w.MatchConditions {
		h.conditions = append(h.conditions, cel.MatchCondition(c))
	}
	h.objects, err = selector(w.ObjectSelector)
	return h, err
}

// clientConfig converts the client configuration of a webhook.
func clientConfig(c admissionregistrationv1.WebhookClientConfig) webhook.Config {
	config := webhook.Config{URL: c.URL, CABundle: c.CABundle}
	if s := c.Service; s != nil {
		config.Service = &webhook.Service{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	return config
}

// selector parses a label selector; nil selects everything.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}
