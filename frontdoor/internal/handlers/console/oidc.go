package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-chi/chi/v5"
	"github.com/spf13/pflag"
	"golang.org/x/oauth2"

	"github.com/portico-platform/portico/services/kit/oidchttp"
	"github.com/portico-platform/portico/services/kit/run"
)

const (
	// loginCookie holds the state of a login between the request to the issuer and its answer, loginTime how
	// long that may take. Browsers let no other host set a cookie whose name begins with __Host-, which would
	// log the user in as another user.
	loginCookie = "__Host-portico-login"
	loginTime   = 10 * time.Minute
	// maxExchanges bounds the concurrent exchanges: anyone may start one.
	maxExchanges = 16
	maxExchange  = 16 << 10
)

type oidcSettings struct {
	issuer, clientID, secretFile, caFile string
	scopes                               []string
}

func (s *oidcSettings) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.issuer, "console-oidc-issuer-url", "", "OpenID Connect issuer that the console can log in with; authn has to accept its tokens (--oidc-issuer-url)")
	fs.StringVar(&s.clientID, "console-oidc-client-id", "", "the console's client ID at the issuer, whose redirect URL is https://<host>/console/")
	fs.StringVar(&s.secretFile, "console-oidc-client-secret-file", "", "file with the client's secret; without it, the client is a public one")
	fs.StringVar(&s.caFile, "console-oidc-ca-file", "", "certificate authorities of the issuer; the host's if empty")
	fs.StringSliceVar(&s.scopes, "console-oidc-scopes", []string{"email", "groups"}, "scopes to request in addition to openid")
}

// unused returns a usage error if a flag is set though there is no console.
func (s *oidcSettings) unused() error {
	if s.issuer != "" {
		return run.Usagef("--console-oidc-issuer-url: requires --console=true")
	}
	return nil
}

// new returns nil if there is no issuer.
func (s *oidcSettings) new() (*login, error) {
	if s.issuer == "" {
		if s.clientID != "" {
			return nil, run.Usagef("--console-oidc-client-id needs --console-oidc-issuer-url")
		}
		return nil, nil
	}
	if u, err := url.Parse(s.issuer); err != nil || u.Scheme != "https" {
		return nil, run.Usagef("--console-oidc-issuer-url: %q is not an https URL", s.issuer)
	}
	if s.clientID == "" {
		return nil, run.Usagef("--console-oidc-issuer-url needs --console-oidc-client-id")
	}
	l := &login{issuer: s.issuer, config: oauth2.Config{ClientID: s.clientID, Scopes: append([]string{oidc.ScopeOpenID}, s.scopes...)}, seats: make(chan struct{}, maxExchanges)}
	if s.secretFile != "" {
		secret, err := os.ReadFile(s.secretFile)
		if err != nil {
			return nil, run.Usagef("--console-oidc-client-secret-file: %v", err)
		}
		l.config.ClientSecret = strings.TrimSpace(string(secret))
	}
	var roots *x509.CertPool // nil: the host's
	if s.caFile != "" {
		pem, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, run.Usagef("--console-oidc-ca-file: %v", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, run.Usagef("--console-oidc-ca-file: %s has no certificate", s.caFile)
		}
	}
	l.client = &http.Client{Timeout: oidchttp.Patience, Transport: oidchttp.Transport(roots)}
	return l, nil
}

// login exchanges codes of an issuer for ID tokens. Its only state is in a cookie of the
// browser, so that any front door can continue what another one began.
type login struct {
	issuer string
	config oauth2.Config
	client *http.Client
	seats  chan struct{}

	mu       sync.Mutex
	provider *oidc.Provider // once the issuer has been discovered
}

func (l *login) routes(r chi.Router) {
	r.Get(prefix+"/login", l.begin)
	r.Post(prefix+"/token", l.exchange)
}

// discovered returns the issuer and the configuration of the client for a host.
func (l *login) discovered(ctx context.Context, host string) (*oidc.Provider, *oauth2.Config, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.provider == nil {
		// The provider keeps the context, for the issuer's keys.
		p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), l.client), l.issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("the OpenID Connect issuer cannot be reached: %w", err)
		}
		l.provider = p
	}
	c := l.config
	c.Endpoint = l.provider.Endpoint()
	c.RedirectURL = "https://" + host + prefix + "/"
	return l.provider, &c, nil
}

// begin sends the browser to the issuer.
func (l *login) begin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !l.seat(w) {
		return
	}
	defer l.leave()
	_, config, err := l.discovered(r.Context(), r.Host)
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
		return
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	http.SetCookie(w, cookie(state+"."+nonce+"."+verifier, int(loginTime.Seconds())))
	http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), http.StatusSeeOther)
}

func cookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: loginCookie, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

var errNotBegun = errors.New("this login was not started by this browser, or has expired; log in again")

// exchange answers with the ID token of a code. Only the browser that began the login has the
// cookie with the state, the nonce and the verifier.
func (l *login) exchange(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	http.SetCookie(w, cookie("", -1))
	kept, err := r.Cookie(loginCookie)
	if err != nil {
		refuse(w, http.StatusBadRequest, errNotBegun)
		return
	}
	parts := strings.Split(kept.Value, ".")
	var grant struct{ Code, State string }
	err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxExchange)).Decode(&grant)
	if err != nil || len(parts) != 3 || grant.Code == "" || subtle.ConstantTimeCompare([]byte(grant.State), []byte(parts[0])) != 1 {
		refuse(w, http.StatusBadRequest, errNotBegun)
		return
	}
	if !l.seat(w) {
		return
	}
	defer l.leave()
	token, err := l.token(r, grant.Code, parts[1], parts[2])
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
		return
	}
	answer(w, http.StatusOK, map[string]string{"token": token})
}

// token asks the issuer for the ID token, and checks it: authn decides whether it is
// accepted, but only here is the nonce known.
func (l *login) token(r *http.Request, code, nonce, verifier string) (string, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), l.client), oidchttp.Patience)
	defer cancel()
	provider, config, err := l.discovered(ctx, r.Host)
	if err != nil {
		return "", err
	}
	granted, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return "", fmt.Errorf("the OpenID Connect issuer refused the code: %w", err)
	}
	raw, ok := granted.Extra("id_token").(string)
	if !ok {
		return "", errors.New("the OpenID Connect issuer returned no ID token")
	}
	checked, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(checked.Nonce), []byte(nonce)) != 1 {
		return "", errors.New("the ID token is not for this login")
	}
	return raw, nil
}

// seat reports whether the exchange may start; it answers if not.
func (l *login) seat(w http.ResponseWriter) bool {
	select {
	case l.seats <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, errors.New("too many logins at once; try again"))
		return false
	}
}

func (l *login) leave() { <-l.seats }

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"message": err.Error()})
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the browser may have left
}
