// Package issuers authenticates ID tokens: JSON Web Tokens of the issuers that
// --oidc-issuer-url or the file of --authentication-config names. It discovers the keys of
// issuers while serving, so that these need not be available at start, verifies tokens, and
// maps claims to users by their names or by expressions. It reads no files. It serves section
// "OpenID Connect flags" of the specification.
package issuers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/authn/internal/method"
	"github.com/portico-platform/portico/services"
)

// maxToken is the size of the largest token that is looked at, in bytes.
const maxToken = 64 << 10

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
		return errors.New("no algorithm is specified")
	}
	for _, name := range names {
		if !slices.Contains(signatures, jose.SignatureAlgorithm(name)) {
			return fmt.Errorf("%q is not one of %s", name, strings.Join(SigningAlgorithms(), ", "))
		}
	}
	return nil
}

// Set authenticates the tokens of several issuers, each with its own keys and rules.
type Set struct {
	byURL   map[string]*issuer
	metrics *Metrics
	now     func() time.Time
}

// Settings are those of the process.
type Settings struct {
	Metrics *Metrics
	Now     func() time.Time
	Log     *slog.Logger
}

// New returns the set of some issuers, whose URLs differ. Their tokens are rejected until Run
// has discovered them.
func New(configs []Config, s Settings) *Set {
	set := &Set{byURL: map[string]*issuer{}, metrics: s.Metrics, now: s.Now}
	for _, config := range configs {
		set.byURL[config.Issuer.URL] = newIssuer(config, s)
	}
	return set
}

// URLs returns those of the issuers.
func (s *Set) URLs() (all []string) {
	for url := range s.byURL {
		all = append(all, url)
	}
	return all
}

// Run discovers the issuers. It returns when all are discovered, or when ctx has ended.
func (s *Set) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, i := range s.byURL {
		running.Go(func() { i.discover(ctx) })
	}
	running.Wait()
	return nil
}

// Discovered returns an error that names the issuers that are not discovered yet.
func (s *Set) Discovered() error {
	var missing []error
	for _, i := range s.byURL {
		if why := i.failure.Load(); why != nil {
			missing = append(missing, fmt.Errorf("issuer %q: %w", i.Issuer.URL, *why))
		}
	}
	return errors.Join(missing...)
}

// Name implements method.Method.
func (s *Set) Name() string { return "oidc" }

// Authenticate implements method.Method. Tokens of other issuers are ignored.
func (s *Set) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	i := s.byURL[unverifiedIssuer(c.BearerToken)]
	if i == nil {
		return services.Authentication{}, method.ErrNone
	}
	began := s.now()
	a, err := i.authenticate(ctx, c.BearerToken)
	s.metrics.authenticated(i.Issuer.URL, err, s.now().Sub(began))
	return a, err
}

// unverifiedIssuer returns what a token says of its issuer, which nothing proves.
func unverifiedIssuer(bearer string) string {
	if bearer == "" || len(bearer) > maxToken {
		return ""
	}
	token, err := jwt.ParseSigned(bearer, signatures)
	if err != nil {
		return ""
	}
	var claims jwt.Claims
	if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return ""
	}
	if claims.Issuer == "accounts.google.com" { // an old form
		return "https://accounts.google.com"
	}
	return claims.Issuer
}

// keyOf returns the ID of the key that a verified token is signed with.
func keyOf(bearer string) string {
	token, err := jwt.ParseSigned(bearer, signatures)
	if err != nil || len(token.Headers) == 0 {
		return ""
	}
	return token.Headers[0].KeyID
}

var _ method.Method = (*Set)(nil)
