package strain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/test/attack"
	"github.com/portico-platform/portico/test/attack/webhook"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

func hostileWebhooks() []attack.Trial {
	return []attack.Trial{
		{Name: "WebhookIdentity", Finding: "A5", Run: webhookIdentity},
		{Name: "WebhookStatusCode", Finding: "A6", Run: webhookStatusCode},
		{Name: "WebhookCopyBomb", Finding: "B4", Run: webhookCopyBomb},
		{Name: "WebhookWarnings", Finding: "B6", Run: webhookWarnings},
		{Name: "WebhooksFailClosed", Finding: "D", Run: webhooksFailClosed},
	}
}

const registrations = "/apis/admissionregistration.platform.io/v1/mutatingwebhookconfigurations"

// hookedNamespace is a namespace whose config maps are all sent to one webhook.
type hookedNamespace struct {
	*webhook.Server
	namespace, name string
	root            *attack.Actor
}

// hook starts and registers a webhook and waits until it is called.
func hook(ctx context.Context, t *attack.Target, b webhook.Behaviour) (*hookedNamespace, error) {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	h := &hookedNamespace{webhook.Start(b), namespace, attack.Unique("hook"), t.Root()}
	body := fmt.Sprintf(`{"apiVersion":"admissionregistration.platform.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":%q},
		"webhooks":[{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Fail","timeoutSeconds":2,
		"clientConfig":{"url":%q,"caBundle":%q},"namespaceSelector":{"matchLabels":{"attack":%q}},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["configmaps"]}]}]}`,
		h.name, h.URL()+"/", h.CABundle(), namespace)
	if err := h.root.Create(ctx, registrations, body); err != nil {
		h.Close()
		return nil, err
	}
	called := func() (bool, error) {
		_, err := h.root.Provoke(ctx, attack.Request(http.MethodPost, attack.ConfigMaps(namespace)+"?dryRun=All", attack.ConfigMap("warm-up", "")))
		return h.Received() > 0, err
	}
	if err := attack.Eventually(ctx, 20*time.Second, "a new webhook is called", called); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// end removes the webhook.
func (h *hookedNamespace) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = h.root.Provoke(ctx, attack.Request(http.MethodDelete, registrations+"/"+h.name, ""))
	h.Close()
}

// create creates a config map and accepts any response.
func (h *hookedNamespace) create(ctx context.Context, name string) (cluster.Answer, error) {
	return h.root.Provoke(ctx, attack.Request(http.MethodPost, attack.ConfigMaps(h.namespace), attack.ConfigMap(name, "")))
}

// webhookIdentity changes the identity of an object during admission.
func webhookIdentity(ctx context.Context, t *attack.Target) error {
	for field, operation := range map[string]string{
		"namespace":         `{"op":"add","path":"/metadata/namespace","value":"default"}`,
		"kind":              `{"op":"replace","path":"/kind","value":"Secret"}`,
		"apiVersion":        `{"op":"replace","path":"/apiVersion","value":"v2"}`,
		"uid":               `{"op":"add","path":"/metadata/uid","value":"hacked"}`,
		"creationTimestamp": `{"op":"add","path":"/metadata/creationTimestamp","value":"1999-01-01T00:00:00Z"}`,
		"name":              `{"op":"add","path":"/metadata/name","value":"renamed"}`,
		"deletionTimestamp": `{"op":"add","path":"/metadata/deletionTimestamp","value":"1999-01-01T00:00:00Z"}`,
	} {
		if err := func() error {
			h, err := hook(ctx, t, webhook.Patch("["+operation+"]"))
			if err != nil {
				return err
			}
			defer h.end()
			answer, err := h.create(ctx, "original")
			if err != nil || answer.Code/100 != 2 {
				return err // refused
			}
			return sameIdentity(answer.Body, h.namespace)
		}(); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

// sameIdentity checks the identity of a created object.
func sameIdentity(body, namespace string) error {
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace, UID, CreationTimestamp, DeletionTimestamp string }
	}
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return err
	}
	m := o.Metadata
	if o.APIVersion != "v1" || o.Kind != "ConfigMap" || m.Namespace != namespace || m.UID == "hacked" ||
		strings.HasPrefix(m.CreationTimestamp, "1999") || m.DeletionTimestamp != "" || m.Name != "original" && m.Name != "renamed" {
		return fmt.Errorf("a webhook changed the object to %.300s", body)
	}
	return nil
}

// webhookStatusCode refuses with status codes that are invalid in HTTP.
func webhookStatusCode(ctx context.Context, t *attack.Target) error {
	for _, code := range []int{1000, 99999, -1, 100, 200, 1} {
		h, err := hook(ctx, t, webhook.Deny(code))
		if err != nil {
			return fmt.Errorf("status %d: %w", code, err)
		}
		answer, err := h.create(ctx, "a")
		h.end()
		if err != nil {
			return fmt.Errorf("status %d: %w", code, err)
		}
		if answer.Code < 400 || answer.Code > 599 {
			return fmt.Errorf("status %d of the webhook becomes %d in the response", code, answer.Code)
		}
	}
	return nil
}

// webhookCopyBomb answers with a patch that doubles the object many times.
func webhookCopyBomb(ctx context.Context, t *attack.Target) error {
	return attack.Modest(t, 400<<20, func() error {
		h, err := hook(ctx, t, webhook.CopyBomb(attack.Count(t, 21, 26)))
		if err != nil {
			return err
		}
		defer h.end()
		return attack.Promptly(ctx, tooSlow, "a doubling patch", func(ctx context.Context) error {
			answer, err := h.create(ctx, "bomb")
			if err == nil && answer.Code/100 == 2 {
				err = attack.ErrAccepted
			}
			return err
		})
	})
}

// webhookWarnings answers with many or very long warnings.
func webhookWarnings(ctx context.Context, t *attack.Target) error {
	for _, b := range []webhook.Behaviour{webhook.Warn(1, 100_000), webhook.Warn(2_000, 100)} {
		h, err := hook(ctx, t, b)
		if err != nil {
			return err
		}
		answer, err := h.create(ctx, "warned")
		h.end()
		if err == nil {
			err = fewWarnings(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// webhooksFailClosed answers with invalid, slow and endless responses: no object may be
// created, and the client gets its response in time.
func webhooksFailClosed(ctx context.Context, t *attack.Target) error {
	for name, b := range map[string]webhook.Behaviour{
		"redirect": webhook.Redirect(t.Admin.URL + "/api"),
		"garbage":  webhook.Garbage(),
		"uid":      webhook.WrongUID(),
		"slow":     webhook.Slow(30 * time.Second),
		"endless":  webhook.Endless(attack.Count(t, 64<<20, 1<<30)),
	} {
		if err := attack.Promptly(ctx, 30*time.Second, name, func(ctx context.Context) error {
			h, err := hook(ctx, t, b)
			if err != nil {
				return err
			}
			defer h.end()
			answer, err := h.create(ctx, "unadmitted")
			if err == nil && answer.Code/100 == 2 {
				err = attack.ErrAccepted
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
