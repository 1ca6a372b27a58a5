package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/admission/internal/admissionreview"
	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// Configuration is a stored webhook configuration of either kind.
type Configuration struct {
	hooks []*hook
}

// hook is one parsed webhook of a configuration.
type hook struct {
	configuration, name string
	rules               match.Rules
	// failOpen is failurePolicy Ignore: requests are admitted if the call fails.
	failOpen bool
	// dryRunSafe means that the webhook has no side effects in a dry run.
	dryRunSafe bool
	// reinvoke is reinvocationPolicy IfNeeded: the webhook is called again if the object
	// has changed since its first call.
	reinvoke bool
	timeout  time.Duration
	asker    admissionreview.Asker
	// failsUndecodable means that the failure policy applies to an undecodable patch, as in kube-apiserver at
	// release 1.36.
	failsUndecodable bool
}

func (h *hook) key() string { return h.configuration + "/" + h.name }

// Parser returns a parser of stored configurations, for webhooks that admission is known to by
// an identity. The release decides about the errors of calls.
func Parser(v vocabulary.Vocabulary, r release.Release, clients *webhook.Clients, identities Identities) func(services.Object) (Configuration, error) {
	later := !r.Before(release.V136)
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
			hook, err := newHook(o.Key.Name, &w)
			if err != nil {
				return c, fmt.Errorf("webhook %q: %w", w.Name, err)
			}
			config := clientConfig(w.ClientConfig)
			config.Identity = identities.of(config)
			hook.asker.Vocabulary, hook.asker.NamesPhase, hook.failsUndecodable = v, later, later
			hook.asker.Client = clients.New(config)
			c.hooks = append(c.hooks, hook)
		}
		return c, nil
	}
}

func newHook(configuration string, w *admissionregistrationv1.MutatingWebhook) (*hook, error) {
	failOpen := w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore
	h := &hook{configuration: configuration, name: w.Name, timeout: 10 * time.Second, failOpen: failOpen,
		rules: match.Rules{Who: fmt.Sprintf("webhook %q", w.Name), Rules: w.Rules, FailOpen: failOpen,
			Equivalent: w.MatchPolicy == nil || *w.MatchPolicy == admissionregistrationv1.Equivalent},
		asker:    admissionreview.Asker{Owner: configuration},
		reinvoke: w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy,
	}
	if w.TimeoutSeconds != nil {
		h.timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	if w.SideEffects != nil {
		h.dryRunSafe = *w.SideEffects == admissionregistrationv1.SideEffectClassNone || *w.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	for _, version := range w.AdmissionReviewVersions {
		if version == "v1" || version == "v1beta1" {
			h.asker.Version = version
			break
		}
	}
	for _, c := range w.MatchConditions {
		h.rules.Conditions = append(h.rules.Conditions, cel.MatchCondition(c))
	}
	var err error
	h.rules.Selectors, err = match.ParseSelectors(w.NamespaceSelector, w.ObjectSelector)
	return h, err
}

// clientConfig converts the client configuration of a webhook.
func clientConfig(c admissionregistrationv1.WebhookClientConfig) webhook.Config {
	config := webhook.Config{URL: c.URL, CABundle: c.CABundle}
	if s := c.Service; s != nil {
		config.Service = &webhook.Service{Namespace: s.Namespace, Name: s.Name, Path: s.Path}
		if s.Port != nil {
			port := intstr.FromInt32(*s.Port)
			config.Service.Port = &port
		}
	}
	return config
}
