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
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tokenkey"
	"github.com/portico-platform/portico/services/vocabulary"
)

// serviceAccountFor bounds how long the result for a token may be cached. The front door
// also follows the objects that the token is bound to, so this bounds how long a deleted
// token is accepted while it receives no changes.
const serviceAccountFor = 5 * time.Second

// ServiceAccountConfig holds the keys, issuer and audiences of service account tokens.
type ServiceAccountConfig struct {
	Vocabulary vocabulary.Vocabulary
	KeyFiles   []string // of public or private keys, or certificates
	Issuers    []string // of bound tokens
	Audiences  []string // of this API
	// Store is used to check that the account and the bound objects still exist; nil means
	// no check.
	Store services.Reader
	// Metrics is where the counters of tokens are registered; nil means nowhere.
	Metrics *prometheus.Registry
	// Legacy makes results name the Secret of a token, and refuses tokens whose Secret is marked
	// as invalid.
	Legacy bool
	// Nodes makes the extra values of a user name the node of the token or of its pod.
	Nodes bool
	// CredentialID is the extra value with the ID of a bound token; empty for none.
	CredentialID string
}

// ServiceAccount authenticates tokens of service accounts: those in Secrets, and bound ones
// with an audience and an expiry.
type ServiceAccount struct {
	config ServiceAccountConfig
	keys   []any
	used   usedTokens
	now    func() time.Time
}

// NewServiceAccount reads the keys that verify tokens.
func NewServiceAccount(config ServiceAccountConfig, now func() time.Time) (*ServiceAccount, error) {
	m := &ServiceAccount{config: config, now: now, used: newUsedTokens(config.Metrics)}
	for _, path := range config.KeyFiles {
		keys, err := tokenkey.ReadPublic(path)
		if err != nil {
			return nil, err
		}
		m.keys = append(m.keys, keys...)
	}
	return m, nil
}

// Name implements Method.
func (m *ServiceAccount) Name() string { return "service-account" }

// account holds the service account of a token and the objects that it is bound to.
type account struct {
	Namespace      string `json:"namespace"`
	ServiceAccount named  `json:"serviceaccount"`
	Secret         named  `json:"secret"`
	Pod            named  `json:"pod"`
	// Node is the one that Pod is on. Without Pod the token is bound to it.
	Node named `json:"node"`
	// WarnAfter is when the client should have replaced the token.
	WarnAfter *jwt.NumericDate `json:"warnafter"`
	legacy    bool
	// secrets are those that the account lists, and labels those of Secret.
	secrets []named
	labels  map[string]string
}

type named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Authenticate implements Method. Tokens of other issuers are ignored.
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
	if !slices.Contains(m.config.Issuers, standard.Issuer) && standard.Issuer != m.config.Vocabulary.LegacyTokenIssuer {
		return services.Authentication{}, ErrNone
	}
	claims := map[string]json.RawMessage{}
	if !slices.ContainsFunc(m.keys, func(key any) bool { return token.Claims(key, &standard, &claims) == nil }) {
		return services.Authentication{}, errors.New("the signature was not made with a known key")
	}
	if err := standard.Validate(jwt.Expected{Time: m.now()}); err != nil {
		return services.Authentication{}, err
	}
	a, err := m.account(standard, claims)
	if err != nil {
		return services.Authentication{}, err
	}
	valid := Shared(Wanted(c, m.config.Audiences), standard.Audience)
	if !a.legacy && len(valid) == 0 {
		return services.Authentication{}, fmt.Errorf("the token is for %q", standard.Audience)
	}
	objects, err := m.checkBound(ctx, &a, c)
	if err != nil {
		return services.Authentication{}, err
	}
	legacy := m.legacyToken(&a, objects)
	if legacy != nil && a.labels[m.config.Vocabulary.TokenInvalidSince()] != "" {
		return services.Authentication{}, services.InvalidatedToken(*legacy)
	}
	result := services.Authentication{User: m.user(a, standard.ID), Audiences: valid, CacheFor: serviceAccountFor, Legacy: legacy,
		Credential: services.Credential{TokenID: standard.ID, KeyID: token.Headers[0].KeyID, Objects: objects,
			Expires: timeOf(standard.Expiry), Issued: timeOf(standard.IssuedAt)}}
	if a.WarnAfter != nil && !a.legacy {
		result.WarnAfter = a.WarnAfter.Time()
	}
	m.used.count(a.legacy, result.WarnAfter, m.now())
	if standard.Expiry != nil {
		result.CacheFor = max(0, min(result.CacheFor, standard.Expiry.Time().Sub(m.now())))
	}
	return result, nil
}

// account reads the claims of either kind of token and checks that they match the subject.
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

// user returns the user of a token with an ID, which may be empty.
func (m *ServiceAccount) user(a account, id string) services.UserInfo {
	extra := map[string][]string{}
	if m.config.CredentialID != "" && id != "" && !a.legacy {
		extra[m.config.CredentialID] = []string{"JTI=" + id}
	}
	if a.Pod.Name != "" {
		extra[m.config.Vocabulary.Qualified("authentication", "pod-name")] = []string{a.Pod.Name}
		extra[m.config.Vocabulary.Qualified("authentication", "pod-uid")] = []string{a.Pod.UID}
	}
	if m.config.Nodes && a.Node.Name != "" {
		extra[m.config.Vocabulary.Qualified("authentication", "node-name")] = []string{a.Node.Name}
		if a.Node.UID != "" {
			extra[m.config.Vocabulary.Qualified("authentication", "node-uid")] = []string{a.Node.UID}
		}
	}
	user := services.UserInfo{
		Name: a.user(), UID: a.ServiceAccount.UID,
		Groups: []string{services.GroupServiceAccounts, services.GroupServiceAccounts + ":" + a.Namespace},
	}
	if len(extra) > 0 {
		user.Extra = extra
	}
	return user
}

// timeOf returns the time of a claim; zero if there is none.
func timeOf(d *jwt.NumericDate) time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.Time()
}

// checkBound checks that the account and the objects that the token is bound to still
// exist with the same UID, and returns them. A Secret must still hold this token.
func (m *ServiceAccount) checkBound(ctx context.Context, a *account, c services.Credentials) ([]services.BoundObject, error) {
	if m.config.Store == nil {
		return nil, nil
	}
	node := a.Node
	if a.Pod.Name != "" {
		node = named{} // the token ends with the pod
	}
	var found []services.BoundObject
	for _, b := range []struct {
		resource, namespace string
		named
	}{{"serviceaccounts", a.Namespace, a.ServiceAccount}, {"pods", a.Namespace, a.Pod}, {"nodes", "", node}, {"secrets", a.Namespace, a.Secret}} {
		if b.Name == "" {
			continue
		}
		key := coreKey(b.resource, b.namespace, b.Name)
		object, err := readObject(ctx, m.config.Store, key, anyState(c))
		if services.IsReason(err, services.ReasonNotFound) {
			// The object may be newer than the cached state, so only the newest one rejects.
			object, err = readObject(ctx, m.config.Store, key, services.Read{Mode: services.MostRecent})
		}
		switch {
		case err != nil:
			return nil, err
		case m.deleted(a.legacy, object.Metadata.DeletionTimestamp):
			return nil, fmt.Errorf("%s is being deleted", key)
		case b.UID != "" && b.UID != object.Metadata.UID:
			return nil, fmt.Errorf("%s was replaced", key)
		case a.legacy && b.resource == "secrets" && string(object.Data["token"]) != c.BearerToken:
			return nil, fmt.Errorf("%s no longer has the token", key)
		}
		switch b.resource {
		case "serviceaccounts":
			a.secrets = object.Secrets
		case "secrets":
			a.labels = object.Metadata.Labels
		}
		found = append(found, services.BoundObject{Key: key, UID: object.Metadata.UID})
	}
	return found, nil
}

// legacyToken returns what is recorded of a token in a Secret; nil for other tokens, and if
// nothing is recorded.
func (m *ServiceAccount) legacyToken(a *account, bound []services.BoundObject) *services.LegacyToken {
	if !m.config.Legacy || !a.legacy || a.Secret.Name == "" || len(bound) == 0 {
		return nil
	}
	secret := bound[len(bound)-1] // the Secret is checked last
	return &services.LegacyToken{Secret: secret.Key, UID: secret.UID, LastUsed: a.labels[m.config.Vocabulary.TokenLastUsed()],
		Generated: slices.ContainsFunc(a.secrets, func(listed named) bool { return listed.Name == secret.Key.Name })}
}

// deleted reports whether an object with a deletionTimestamp no longer validates the token. A pod
// uses its token until its grace period is over, which is what its deletionTimestamp says. Tokens in
// Secrets end at once.
func (m *ServiceAccount) deleted(legacy bool, at *time.Time) bool {
	return at != nil && (legacy || at.Before(m.now().Add(-jwt.DefaultLeeway)))
}

var _ Method = (*ServiceAccount)(nil)
