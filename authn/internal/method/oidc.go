package method

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// oidcFor bounds how long the result for an ID token may be cached.
	oidcFor = time.Minute
	// discoveryTimeout bounds one request to the issuer. A failed discovery is retried with
	// a backoff from firstDiscovery to slowestDiscovery.
	discoveryTimeout                 = 10 * time.Second
	firstDiscovery, slowestDiscovery = 200 * time.Millisecond, 10 * time.Second
)

// signatures are the signature algorithms of ID tokens that can be accepted.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512}

// SigningAlgorithms returns the names of the signature algorithms of ID tokens that can be
// accepted.
func SigningAlgorithms() []string {
	names := make([]string, len(signatures))
	for i, a := range signatures {
		names[i] = string(a)
	}
	return names
}

// CheckSigningAlgorithms returns an error unless there are names and each is one of
// SigningAlgorithms.
func CheckSigningAlgorithms(names []string) error {
	if len(names) == 0 {
		return errors.New("no algorithm is given")
	}
	for _, name := range names {
		if !slices.Contains(signatures, jose.SignatureAlgorithm(name)) {
			return fmt.Errorf("%q is not one of %s", name, strings.Join(SigningAlgorithms(), ", "))
		}
	}
	return nil
}

// OIDCConfig holds the issuer of ID tokens and the claims to read (section
// "OpenID Connect flags").
type OIDCConfig struct {
	IssuerURL      string
	ClientID       string
	UsernameClaim  string
	UsernamePrefix string // "": depends on UsernameClaim; "-": none
	GroupsClaim    string
	GroupsPrefix   string
	RequiredClaims map[string]string
	// SigningAlgorithms are the accepted ones of SigningAlgorithms().
	SigningAlgorithms []string
	CAFile            string // empty: the host's root certificates
	Log               *slog.Logger
}

// OIDC authenticates ID tokens of one issuer. It discovers the issuer's keys while
// serving, so that the issuer need not be available at start.
type OIDC struct {
	config   OIDCConfig
	client   *http.Client
	now      func() time.Time
	verifier atomic.Pointer[oidc.IDTokenVerifier]
}

// NewOIDC checks the configuration. Tokens are rejected until Run has discovered the
// issuer.
func NewOIDC(config OIDCConfig, now func() time.Time) (*OIDC, error) {
	var roots *x509.CertPool // nil: the host's root certificates
	if config.CAFile != "" {
		var err error
		if roots, err = readRoots([]string{config.CAFile}); err != nil {
			return nil, err
		}
	}
	switch {
	case config.UsernamePrefix == "-":
		config.UsernamePrefix = ""
	case config.UsernamePrefix == "" && config.UsernameClaim != "email":
		config.UsernamePrefix = config.IssuerURL + "#"
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return &OIDC{config: config, now: now, client: &http.Client{Transport: transport, Timeout: discoveryTimeout}}, nil
}

// Run discovers the issuer and retries until it succeeds. The verifier refreshes keys
// until ctx ends.
func (m *OIDC) Run(ctx context.Context) error {
	ctx = oidc.ClientContext(ctx, m.client)
	for pauses := retry.NewBackoff(firstDiscovery, slowestDiscovery); ; {
		provider, err := oidc.NewProvider(ctx, m.config.IssuerURL)
		if err == nil {
			m.verifier.Store(provider.VerifierContext(ctx, &oidc.Config{
				ClientID: m.config.ClientID, SupportedSigningAlgs: m.config.SigningAlgorithms, Now: m.now}))
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		m.config.Log.Warn("discovery of the OpenID Connect issuer failed", "issuer", m.config.IssuerURL, "error", err)
		if !pauses.Pause(ctx) {
			return nil
		}
	}
}

// Name implements Method.
func (m *OIDC) Name() string { return "oidc" }

// Authenticate implements Method. Tokens of other issuers are ignored.
func (m *OIDC) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	if !m.issued(c.BearerToken) {
		return services.Authentication{}, ErrNone
	}
	verifier := m.verifier.Load()
	if verifier == nil {
		return services.Authentication{}, errors.New("the issuer's keys are not known yet")
	}
	token, err := verifier.Verify(ctx, c.BearerToken)
	if err != nil {
		return services.Authentication{}, err
	}
	claims := map[string]json.RawMessage{}
	if err := token.Claims(&claims); err != nil {
		return services.Authentication{}, err
	}
	if err := m.checkIssued(claims, token.IssuedAt); err != nil {
		return services.Authentication{}, err
	}
	user, err := m.user(claims)
	if err != nil {
		return services.Authentication{}, err
	}
	credential := services.Credential{Expires: token.Expiry, Issued: token.IssuedAt}
	_ = json.Unmarshal(claims["jti"], &credential.TokenID) // optional
	credential.KeyID = keyOf(c.BearerToken)
	return services.Authentication{User: user, CacheFor: max(0, min(oidcFor, token.Expiry.Sub(m.now()))), Credential: credential}, nil
}

// skew is the tolerated clock skew of the issuer.
const skew = time.Minute

// checkIssued rejects a token without claim iat, or with one in the future (section
// "OpenID Connect flags").
func (m *OIDC) checkIssued(claims map[string]json.RawMessage, at time.Time) error {
	switch _, ok := claims["iat"]; {
	case !ok || at.IsZero() || at.Unix() <= 0:
		return errors.New("claim iat does not say when the token was issued")
	case at.After(m.now().Add(skew)):
		return fmt.Errorf("the token is issued in the future: %v", at.UTC())
	}
	return nil
}

// issued reports whether the unverified claim iss of a token is the issuer.
func (m *OIDC) issued(bearer string) bool {
	token, err := jwt.ParseSigned(bearer, signatures)
	if err != nil {
		return false
	}
	var claims jwt.Claims
	return token.UnsafeClaimsWithoutVerification(&claims) == nil && claims.Issuer == m.config.IssuerURL
}

// keyOf returns the ID of the key that a verified token is signed with.
func keyOf(bearer string) string {
	token, err := jwt.ParseSigned(bearer, signatures)
	if err != nil || len(token.Headers) == 0 {
		return ""
	}
	return token.Headers[0].KeyID
}

// user returns the user of verified claims.
func (m *OIDC) user(claims map[string]json.RawMessage) (services.UserInfo, error) {
	var user services.UserInfo
	for claim, want := range m.config.RequiredClaims {
		var got string
		if err := json.Unmarshal(claims[claim], &got); err != nil || got != want {
			return user, fmt.Errorf("claim %s is not %q", claim, want)
		}
	}
	var name string
	if err := json.Unmarshal(claims[m.config.UsernameClaim], &name); err != nil || name == "" {
		return user, fmt.Errorf("claim %s holds no user name", m.config.UsernameClaim)
	}
	if verified, ok := claims["email_verified"]; ok && m.config.UsernameClaim == "email" && string(verified) != "true" {
		return user, errors.New("the email address is not verified")
	}
	user.Name = m.config.UsernamePrefix + name
	given, ok := claims[m.config.GroupsClaim]
	if m.config.GroupsClaim == "" || !ok {
		return user, nil
	}
	if err := json.Unmarshal(given, &user.Groups); err != nil {
		return user, fmt.Errorf("claim %s is not a list of texts", m.config.GroupsClaim)
	}
	for i, group := range user.Groups {
		user.Groups[i] = m.config.GroupsPrefix + group
	}
	return user, nil
}

var _ Method = (*OIDC)(nil)
