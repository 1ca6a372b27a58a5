package method

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// serviceAccountFor is how long an answer about a token may be reused: no longer
// than it may take until a deleted token is refused.
const serviceAccountFor = 5 * time.Second

// ServiceAccountConfig says which tokens of service accounts are good.
type ServiceAccountConfig struct {
	Vocabulary vocabulary.Vocabulary
	KeyFiles   []string // of public or private keys, or certificates
	Issuer     string   // of bound tokens
	Audiences  []string // that this API answers to
	// Store is asked whether account and secret still exist; nil: they are taken to.
	Store services.Reader
}

// ServiceAccount knows the signed tokens of service accounts: those that are kept
// in secrets, and those that are bound to an audience and a time.
type ServiceAccount struct {
	config ServiceAccountConfig
	keys   []any
	now    func() time.Time
}

// NewServiceAccount reads the keys that tokens are verified with.
func NewServiceAccount(config ServiceAccountConfig, now func() time.Time) (*ServiceAccount, error) {
	m := &ServiceAccount{config: config, now: now}
	for _, path := range config.KeyFiles {
		keys, err := readPublicKeys(path)
		if err != nil {
			return nil, err
		}
		m.keys = append(m.keys, keys...)
	}
	return m, nil
}

// Name implements Method.
func (m *ServiceAccount) Name() string { return "service-account" }

// account is who a token speaks for and what it was made for.
type account struct {
	Namespace      string `json:"namespace"`
	ServiceAccount named  `json:"serviceaccount"`
	Secret         named  `json:"secret"`
	Pod            named  `json:"pod"`
	legacy         bool
}

type named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Authenticate implements Method. Tokens of other issuers count as none.
func (m *ServiceAccount) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	token, err := jwt.ParseSigned(c.BearerToken, []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512})
	if err != nil {
		return services.Authentication{}, ErrNone
	}
	var standard jwt.Claims
	if err := token.UnsafeClaimsWithoutVerification(&standard); err != nil {
		return services.Authentication{}, ErrNone
	}
	if standard.Issuer != m.config.Issuer && standard.Issuer != m.config.Vocabulary.LegacyTokenIssuer {
		return services.Authentication{}, ErrNone
	}
	claims := map[string]json.RawMessage{}
	if !slices.ContainsFunc(m.keys, func(key any) bool { return token.Claims(key, &standard, &claims) == nil }) {
		return services.Authentication{}, errors.New("the signature is not of a known key")
	}
	if err := standard.Validate(jwt.Expected{Time: m.now()}); err != nil {
		return services.Authentication{}, err
	}
	a, err := m.account(standard, claims)
	if err != nil {
		return services.Authentication{}, err
	}
	valid := Shared(c.Audiences, standard.Audience)
	meant := len(valid) > 0 || len(c.Audiences) == 0 && len(Shared(m.config.Audiences, standard.Audience)) > 0
	if !a.legacy && !meant {
		return services.Authentication{}, fmt.Errorf("the token is for %q", standard.Audience)
	}
	if err := m.alive(ctx, a, c.BearerToken); err != nil {
		return services.Authentication{}, err
	}
	result := services.Authentication{User: m.user(a), Audiences: valid, CacheFor: serviceAccountFor}
	if standard.Expiry != nil {
		result.CacheFor = max(0, min(result.CacheFor, standard.Expiry.Time().Sub(m.now())))
	}
	return result, nil
}

// account reads the claims of either kind of token and holds them against the subject.
func (m *ServiceAccount) account(standard jwt.Claims, claims map[string]json.RawMessage) (account, error) {
	a := account{legacy: standard.Issuer == m.config.Vocabulary.LegacyTokenIssuer}
	if a.legacy {
		for claim, into := range map[string]*string{
			"namespace": &a.Namespace, "secret.name": &a.Secret.Name,
			"service-account.name": &a.ServiceAccount.Name, "service-account.uid": &a.ServiceAccount.UID,
		} {
			if err := json.Unmarshal(claims[m.config.Vocabulary.Qualified("", "serviceaccount/"+claim)], into); err != nil {
				return a, fmt.Errorf("claim %s: %w", claim, err)
			}
		}
	} else if err := json.Unmarshal(claims[m.config.Vocabulary.Domain], &a); err != nil {
		return a, fmt.Errorf("claim %s: %w", m.config.Vocabulary.Domain, err)
	}
	if name := a.user(); standard.Subject != name || a.Namespace == "" || a.ServiceAccount.Name == "" {
		return a, fmt.Errorf("the subject is %q and the account %q", standard.Subject, name)
	}
	return a, nil
}

func (a *account) user() string {
	return services.UserServiceAccountStart + a.Namespace + ":" + a.ServiceAccount.Name
}

func (m *ServiceAccount) user(a account) services.UserInfo {
	user := services.UserInfo{
		Name: a.user(), UID: a.ServiceAccount.UID,
		Groups: []string{services.GroupServiceAccounts, services.GroupServiceAccounts + ":" + a.Namespace},
	}
	if a.Pod.Name != "" {
		user.Extra = map[string][]string{
			m.config.Vocabulary.Qualified("authentication", "pod-name"): {a.Pod.Name},
			m.config.Vocabulary.Qualified("authentication", "pod-uid"):  {a.Pod.UID},
		}
	}
	return user
}

// alive checks that the account, and what else the token is bound to, still
// exists. A secret must still hold this very token.
func (m *ServiceAccount) alive(ctx context.Context, a account, token string) error {
	if m.config.Store == nil {
		return nil
	}
	bound := []struct {
		resource string
		named
	}{{"serviceaccounts", a.ServiceAccount}, {"pods", a.Pod}, {"secrets", a.Secret}}
	for _, b := range bound {
		if b.Name == "" {
			continue
		}
		key := coreKey(b.resource, a.Namespace, b.Name)
		object, err := readObject(ctx, m.config.Store, key, services.AnyRevision)
		if services.IsReason(err, services.ReasonNotFound) {
			// Made a moment ago, perhaps: only the newest state refuses.
			object, err = readObject(ctx, m.config.Store, key, services.MostRecent)
		}
		switch {
		case err != nil:
			return err
		case object.Metadata.DeletionTimestamp != nil:
			return fmt.Errorf("%s is being deleted", key)
		case b.UID != "" && b.UID != object.Metadata.UID:
			return fmt.Errorf("%s is another one now", key)
		case a.legacy && b.resource == "secrets" && string(object.Data["token"]) != token:
			return fmt.Errorf("%s does not hold the token any more", key)
		}
	}
	return nil
}

var _ Method = (*ServiceAccount)(nil)
