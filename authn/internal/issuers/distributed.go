package issuers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
)

// maxSources is how many issuers of distributed claims are known at a time.
const maxSources = 16

// distributed fetches the claim with the groups from the endpoint that a token names instead of
// it. What the endpoint returns is a token too, for the same audiences, whose issuer may be
// another one: its keys are discovered when they are first needed.
type distributed struct {
	claim     string
	audiences []string
	client    *http.Client
	config    *oidc.Config

	mu    sync.Mutex
	known map[string]*oidc.IDTokenVerifier // by issuer
}

func newDistributed(claim string, audiences []string, client *http.Client, config *oidc.Config) *distributed {
	return &distributed{claim: claim, audiences: audiences, client: client, config: config, known: map[string]*oidc.IDTokenVerifier{}}
}

// endpoint is where a claim can be fetched.
type endpoint struct {
	URL         string `json:"endpoint"`
	AccessToken string `json:"access_token"`
}

// expand adds the claim to verified claims, if they have it not but say where it is.
func (d *distributed) expand(ctx context.Context, c claims) error {
	names, ok := c["_claim_names"]
	if _, has := c[d.claim]; has || !ok {
		return nil
	}
	var sourceOf map[string]string
	if err := json.Unmarshal(names, &sourceOf); err != nil {
		return fmt.Errorf("_claim_names: %w", err)
	}
	source, ok := sourceOf[d.claim]
	if !ok {
		return nil
	}
	var sources map[string]endpoint
	if err := json.Unmarshal(c["_claim_sources"], &sources); err != nil {
		return fmt.Errorf("_claim_sources: %w", err)
	}
	at, ok := sources[source]
	switch {
	case !ok:
		return fmt.Errorf("_claim_sources has no source %q", source)
	case at.URL == "": // the claim may be in the source itself, which no one reads
		return nil
	}
	value, err := d.fetch(ctx, at)
	if err != nil {
		return err
	}
	c[d.claim] = value
	return nil
}

// fetch returns the value of the claim.
func (d *distributed) fetch(ctx context.Context, at endpoint) (json.RawMessage, error) {
	bearer, err := d.get(ctx, at)
	if err != nil {
		return nil, err
	}
	issuer := unverifiedIssuer(bearer)
	if issuer == "" {
		return nil, errors.New("the endpoint does not return a token of the issuer")
	}
	verifier, err := d.verifier(ctx, issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer %q: %w", issuer, err)
	}
	_, all, err := verified(ctx, verifier, bearer, d.audiences)
	if err == nil {
		err = all.checkBegun(d.config.Now())
	}
	if err != nil {
		return nil, err
	}
	value, ok := all[d.claim]
	if !ok {
		return nil, fmt.Errorf("the token of the endpoint has no claim %s", d.claim)
	}
	return value, nil
}

// get returns the token of an endpoint.
func (d *distributed) get(ctx context.Context, at endpoint) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return "", err
	}
	if at.AccessToken != "" {
		request.Header.Set("Authorization", "Bearer "+at.AccessToken)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the endpoint responds with %s", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// verifier returns that of an issuer.
func (d *distributed) verifier(ctx context.Context, issuer string) (*oidc.IDTokenVerifier, error) {
	d.mu.Lock()
	known := d.known[issuer]
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx = oidc.ClientContext(ctx, d.client)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, err
	}
	verifier := provider.VerifierContext(ctx, d.config)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxSources {
		clear(d.known)
	}
	d.known[issuer] = verifier
	return verifier, nil
}
