package issuers

import (
	"context"
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
	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// firstDiscovery and slowestDiscovery bound the pauses between attempts to discover an
	// issuer.
	firstDiscovery, slowestDiscovery = 200 * time.Millisecond, 10 * time.Second
	// skew is the tolerated clock skew of an issuer.
	skew = time.Minute
)

// Config describes one issuer.
type Config struct {
	// JWTAuthenticator is valid. Its certificateAuthority does not count: Roots does.
	apiserver.JWTAuthenticator
	// Expressions are the compiled ones of JWTAuthenticator.
	Expressions authenticationcel.CELMapper
	// Algorithms are the accepted ones of SigningAlgorithms.
	Algorithms []string
	// Roots are the authorities of the issuer's certificate; nil: those of the host.
	Roots *x509.CertPool
	// RequireIssued refuses tokens that do not say when they were issued.
	RequireIssued bool
	// CredentialID is the extra attribute with the ID of the token; empty for none.
	CredentialID string
	// CacheFor bounds how long the caller may cache the result for a token.
	CacheFor time.Duration
}

// issuer authenticates the tokens of one issuer.
type issuer struct {
	Config
	client   *http.Client
	now      func() time.Time
	log      *slog.Logger
	verifier atomic.Pointer[oidc.IDTokenVerifier]
	// failure is why the issuer is not discovered yet.
	failure atomic.Pointer[error]
	groups  *distributed
}

func newIssuer(config Config, s Settings) *issuer {
	i := &issuer{Config: config, now: s.Now, log: s.Log, client: newClient(&config, s.Metrics)}
	if claim := config.ClaimMappings.Groups.Claim; claim != "" {
		i.groups = newDistributed(claim, config.Issuer.Audiences, i.client, i.verification())
	}
	unknown := errors.New("its keys are not known yet")
	i.failure.Store(&unknown)
	return i
}

// verification is how tokens of this issuer, and the distributed claims that they refer to,
// are verified. The audiences are checked by audience, because the library knows only one.
func (i *issuer) verification() *oidc.Config {
	return &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: i.Algorithms, Now: i.now}
}

// discover finds the keys of the issuer. It retries until it succeeds, or ctx ends. The
// verifier refreshes keys afterwards.
func (i *issuer) discover(ctx context.Context) {
	ctx = oidc.ClientContext(ctx, i.client)
	for pauses := retry.NewBackoff(firstDiscovery, slowestDiscovery); ; {
		provider, err := oidc.NewProvider(ctx, i.Issuer.URL)
		if err == nil {
			err = i.follow(provider)
		}
		if err == nil {
			i.verifier.Store(provider.VerifierContext(ctx, i.verification()))
			i.failure.Store(nil)
			return
		}
		if ctx.Err() != nil {
			return
		}
		i.failure.Store(&err)
		i.log.Warn("discovery of the OpenID Connect issuer failed", "issuer", i.Issuer.URL, "error", err)
		if !pauses.Pause(ctx) {
			return
		}
	}
}

// follow makes the client know where the keys of the issuer are.
func (i *issuer) follow(p *oidc.Provider) error {
	var document struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := p.Claims(&document); err != nil {
		return err
	}
	if !strings.HasPrefix(document.KeysURL, "https://") {
		return fmt.Errorf("jwks_uri %q is not an https URL", document.KeysURL)
	}
	i.client.Transport.(*transport).keysURL.Store(&document.KeysURL)
	return nil
}

// authenticate returns the user of a token that says to be of this issuer.
func (i *issuer) authenticate(ctx context.Context, bearer string) (services.Authentication, error) {
	none := services.Authentication{}
	verifier := i.verifier.Load()
	if verifier == nil {
		return none, errors.New("the issuer's keys are not known yet")
	}
	token, claims, err := verified(ctx, verifier, bearer, i.Issuer.Audiences)
	if err == nil {
		err = claims.checkBegun(i.now())
	}
	if err != nil {
		return none, err
	}
	if err := i.checkIssued(claims, token.IssuedAt); err != nil {
		return none, err
	}
	if i.groups != nil {
		if err := i.groups.expand(ctx, claims); err != nil {
			return none, fmt.Errorf("distributed claims: %w", err)
		}
	}
	user, err := i.user(ctx, claims)
	if err != nil {
		return none, err
	}
	credential := services.Credential{Expires: token.Expiry, Issued: token.IssuedAt, KeyID: keyOf(bearer)}
	_ = json.Unmarshal(claims["jti"], &credential.TokenID) // optional
	return services.Authentication{User: user, CacheFor: max(0, min(i.CacheFor, token.Expiry.Sub(i.now()))), Credential: credential}, nil
}

// claims are those of a verified token, by their exact names.
type claims map[string]json.RawMessage

// verified verifies a token, which must be for one of the audiences.
func verified(ctx context.Context, by *oidc.IDTokenVerifier, bearer string, audiences []string) (*oidc.IDToken, claims, error) {
	token, err := by.Verify(ctx, bearer)
	if err != nil {
		return nil, nil, err
	}
	var raw json.RawMessage
	if err := token.Claims(&raw); err != nil {
		return nil, nil, err
	}
	all := claims{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, err
	}
	if err := all.checkNames(raw); err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(audiences, a) }) {
		return nil, nil, fmt.Errorf("the token is for %q, none of which is an audience of the issuer", token.Audience)
	}
	return token, all, nil
}

// registered are the claims that decide whether a token is valid.
var registered = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "_claim_names", "_claim_sources"}

// checkNames rejects claims that could be read in two ways: duplicate ones, and those whose
// names are registered ones in another spelling, which the library takes for these.
func (c claims) checkNames(raw []byte) error {
	var all map[string]any
	duplicates, err := kjson.UnmarshalStrict(raw, &all)
	if err != nil {
		return err
	}
	if len(duplicates) > 0 {
		return duplicates[0]
	}
	for name := range c {
		for _, known := range registered {
			if name != known && strings.EqualFold(name, known) {
				return fmt.Errorf("claim %q is spelled like %s", name, known)
			}
		}
	}
	return nil
}

// checkBegun rejects a token that is not valid yet. The library tolerates a clock that is five minutes wrong; this is
// as strict as kube-apiserver.
func (c claims) checkBegun(now time.Time) error {
	raw, ok := c["nbf"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var seconds json.Number
	if err := json.Unmarshal(raw, &seconds); err != nil {
		return fmt.Errorf("claim nbf: %w", err)
	}
	at, err := seconds.Float64()
	if err != nil {
		return fmt.Errorf("claim nbf: %w", err)
	}
	if at > float64(now.Add(skew).UnixNano())/float64(time.Second) {
		return fmt.Errorf("the token is not valid before %s, in seconds since 1970", seconds)
	}
	return nil
}

// checkIssued rejects a token without claim iat, or with one in the future, if the issuer must
// say when it issued a token.
func (i *issuer) checkIssued(c claims, at time.Time) error {
	if !i.RequireIssued {
		return nil
	}
	switch _, ok := c["iat"]; {
	case !ok || at.IsZero() || at.Unix() <= 0:
		return errors.New("claim iat is missing or invalid")
	case at.After(i.now().Add(skew)):
		return fmt.Errorf("the token is issued in the future: %v", at.UTC())
	}
	return nil
}

// text returns a claim that is a string.
func (c claims) text(name string) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", fmt.Errorf("claim %s is missing", name)
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", fmt.Errorf("claim %s is not a string", name)
	}
	return value, nil
}
