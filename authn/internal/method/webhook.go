package method

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/lru"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	// webhookTimeout bounds one call of the webhook.
	webhookTimeout = 10 * time.Second
	// webhookAnswers bounds the number of cached responses.
	webhookAnswers = 4096
	// webhookMaxHeader bounds the headers of a response.
	webhookMaxHeader = 64 << 10
	// webhookMaxCached is the size of the largest cached response.
	webhookMaxCached = 16 << 10
)

// WebhookConfig holds the remote service that checks tokens (section "Outbound webhook
// for bearer tokens").
type WebhookConfig struct {
	ConfigFile string // a kubeconfig
	APIVersion string // of the TokenReview that is sent, with its group
	// Audiences are those of the API, for which a token counts whose webhook names none.
	Audiences []string
	CacheFor  time.Duration
	Log       *slog.Logger
	// Ledger counts the responses; nil counts nothing.
	Ledger *ledger.Ledger
}

// Webhook authenticates bearer tokens by a remote service and caches its responses.
type Webhook struct {
	config  WebhookConfig
	url     string
	client  *http.Client
	answers *lru.Cache // of [32]byte to answer
	now     func() time.Time
}

// tokenReview is the body of the request and of the response.
type tokenReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Token     string   `json:"token,omitempty"`
		Audiences []string `json:"audiences,omitempty"`
	} `json:"spec"`
	Status reviewStatus `json:"status"`
}

type reviewStatus struct {
	Authenticated bool `json:"authenticated"`
	User          struct {
		Username string              `json:"username"`
		UID      string              `json:"uid"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	Audiences []string `json:"audiences"`
	Error     string   `json:"error"`
}

// answer is a cached response.
type answer struct {
	status reviewStatus
	until  time.Time
}

// NewWebhook reads the kubeconfig of the remote service.
func NewWebhook(config WebhookConfig, now func() time.Time) (*Webhook, error) {
	remote, err := clientcmd.BuildConfigFromFlags("", config.ConfigFile)
	if err != nil {
		return nil, err
	}
	client, err := webhookClient(remote)
	if err != nil {
		return nil, err
	}
	url := remote.Host
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return &Webhook{config: config, url: url, client: client, answers: lru.New(webhookAnswers), now: now}, nil
}

// webhookClient returns a client that sends tokens to the service alone: it follows no redirects.
func webhookClient(remote *rest.Config) (*http.Client, error) {
	secured, err := rest.TLSConfigFor(remote)
	if err != nil {
		return nil, err
	}
	proxy := remote.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	wrapped, err := rest.HTTPWrappersForConfig(remote, endpoint.Bound(&http.Transport{Proxy: proxy, TLSClientConfig: secured,
		MaxResponseHeaderBytes: webhookMaxHeader, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16}))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: wrapped, Timeout: webhookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// Name implements Method.
func (m *Webhook) Name() string { return "token-webhook" }

// Authenticate implements Method.
func (m *Webhook) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	if c.BearerToken == "" {
		return services.Authentication{}, ErrNone
	}
	a, err := m.answer(ctx, c)
	if err != nil {
		m.config.Log.WarnContext(ctx, "the token webhook call failed", "error", err)
		return services.Authentication{}, err
	}
	user := a.status.User
	if !a.status.Authenticated || user.Username == "" {
		return services.Authentication{}, &Refusal{a.status.Error}
	}
	meant := a.status.Audiences
	if len(meant) == 0 {
		meant = m.config.Audiences
	}
	valid := Shared(Wanted(c, m.config.Audiences), meant)
	if len(valid) == 0 {
		return services.Authentication{}, fmt.Errorf("the token is for %q", meant)
	}
	return services.Authentication{
		User:      services.UserInfo{Name: user.Username, UID: user.UID, Groups: user.Groups, Extra: user.Extra},
		Audiences: valid, CacheFor: max(0, a.until.Sub(m.now())),
	}, nil
}

// answer returns the cached or a new response of the remote service.
func (m *Webhook) answer(ctx context.Context, c services.Credentials) (answer, error) {
	key := sha256.Sum256([]byte(c.BearerToken + "\x00" + strings.Join(c.Audiences, "\x00")))
	if kept, ok := m.answers.Get(key); ok && m.now().Before(kept.(answer).until) {
		return kept.(answer), nil
	}
	ctx, span := tracing.StartCall(ctx, "webhook", "authenticate")
	status, size, err := m.ask(ctx, c)
	span.End(err)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: status, until: m.now().Add(m.config.CacheFor)}
	if size <= webhookMaxCached {
		m.answers.Add(key, a)
	}
	return a, nil
}

// ask returns the response of the remote service, and its size in bytes.
func (m *Webhook) ask(ctx context.Context, c services.Credentials) (status reviewStatus, size int, err error) {
	question := tokenReview{APIVersion: m.config.APIVersion, Kind: "TokenReview"}
	question.Spec.Token, question.Spec.Audiences = c.BearerToken, Wanted(c, m.config.Audiences)
	body, err := json.Marshal(question)
	if err != nil {
		return status, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return status, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	tracing.ToHeader(ctx, request.Header)
	response, err := m.client.Do(request)
	if err != nil {
		return status, 0, err
	}
	defer response.Body.Close()
	var hold ledger.Hold
	defer hold.Release()
	pays := ledger.Account{Ledger: m.config.Ledger, Owner: ledger.Owner{Kind: ledger.Webhook, Name: m.url}}
	text, err := pays.Read(&hold, response.Body, ledger.ReviewAnswer)
	if err != nil {
		return status, 0, fmt.Errorf("the response of %s: %w", m.url, err)
	}
	if response.StatusCode/100 != 2 {
		return status, 0, fmt.Errorf("%s answered %s", m.url, response.Status)
	}
	var reply tokenReview
	if err := json.Unmarshal(text, &reply); err != nil {
		return status, 0, fmt.Errorf("%s did not return a TokenReview: %w", m.url, err)
	}
	if reply.APIVersion != question.APIVersion || reply.Kind != question.Kind {
		return status, 0, fmt.Errorf("%s answered a %s of %s", m.url, reply.Kind, reply.APIVersion)
	}
	return reply.Status, len(text), nil
}

var _ Method = (*Webhook)(nil)
