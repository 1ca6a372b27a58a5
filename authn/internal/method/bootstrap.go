package method

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	userBootstrap  = "system:bootstrap:"
	groupBootstrap = "system:bootstrappers"
)

var (
	bootstrapToken = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	bootstrapGroup = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)
)

// Bootstrap authenticates bootstrap tokens, with which new nodes join. Each is a Secret in
// the system namespace (section "Bootstrap token secret"). Results are not cached, so that
// a deleted or disabled token is rejected at once.
type Bootstrap struct {
	store     services.Reader
	namespace string
	kind      string // type of the Secrets
	now       func() time.Time
}

// NewBootstrap returns a method that reads the Secrets from a store.
func NewBootstrap(store services.Reader, v vocabulary.Vocabulary, now func() time.Time) *Bootstrap {
	return &Bootstrap{store: store, namespace: v.Namespace("system"), kind: v.Qualified("bootstrap", "token"), now: now}
}

// Name implements Method.
func (m *Bootstrap) Name() string { return "bootstrap-token" }

// Authenticate implements Method.
func (m *Bootstrap) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	parts := bootstrapToken.FindStringSubmatch(c.BearerToken)
	if parts == nil {
		return services.Authentication{}, ErrNone
	}
	id, secret := parts[1], parts[2]
	key := coreKey("secrets", m.namespace, "bootstrap-token-"+id)
	stored, err := readObject(ctx, m.store, key, services.Read{Mode: services.MostRecent})
	if services.IsReason(err, services.ReasonNotFound) {
		return services.Authentication{}, ErrNone
	}
	if err != nil {
		return services.Authentication{}, err
	}
	if err := m.check(stored, id, secret); err != nil {
		return services.Authentication{}, err
	}
	groups := []string{groupBootstrap}
	for group := range strings.SplitSeq(string(stored.Data["auth-extra-groups"]), ",") {
		if group = strings.TrimSpace(group); group == "" {
			continue
		}
		if !bootstrapGroup.MatchString(group) {
			return services.Authentication{}, fmt.Errorf("group %q does not start with %q", group, groupBootstrap+":")
		}
		groups = append(groups, group)
	}
	credential := services.Credential{TokenID: id, Objects: []services.BoundObject{{Key: key, UID: stored.Metadata.UID}}}
	if expires, err := time.Parse(time.RFC3339, string(stored.Data["expiration"])); err == nil {
		credential.Expires = expires
	}
	return services.Authentication{User: services.UserInfo{Name: userBootstrap + id, Groups: groups}, Credential: credential}, nil
}

// check returns why a stored token does not authenticate, nil if it does.
func (m *Bootstrap) check(stored storedObject, id, secret string) error {
	data := stored.Data
	switch {
	case stored.Type != m.kind:
		return fmt.Errorf("the secret is of type %q", stored.Type)
	case stored.Metadata.DeletionTimestamp != nil:
		return errors.New("the token is being deleted")
	case subtle.ConstantTimeCompare(data["token-secret"], []byte(secret)) != 1 || string(data["token-id"]) != id:
		return errors.New("the token differs from the stored one")
	case string(data["usage-bootstrap-authentication"]) != "true":
		return errors.New("the token is not for authentication")
	}
	if text := string(data["expiration"]); text != "" {
		// An invalid time counts as expired, so that a typo does not make a token permanent.
		expires, err := time.Parse(time.RFC3339, text)
		if err != nil || !m.now().Before(expires) {
			return fmt.Errorf("the token expired at %q", text)
		}
	}
	return nil
}

var _ Method = (*Bootstrap)(nil)
