package authn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/authn/internal/method"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/ledger"
)

// anonymousFor is how long the caller may cache that requests without credentials are
// anonymous. It bounds the effect of a restart with another --anonymous-auth.
const anonymousFor = 5 * time.Minute

// anonymous is which requests without credentials are anonymous.
type anonymous struct {
	enabled bool
	paths   []string // those alone, if there are any
}

// alwaysAllow is the mode of authorization that allows everything, also anonymous requests.
const alwaysAllow = "AlwaysAllow"

// anonymousOf returns what the flags and the file say. As in Kubernetes, no request is
// anonymous with the mode AlwaysAllow, unless the file says so.
func anonymousOf(flags *pflag.FlagSet, file *configuration) (a anonymous) {
	a.enabled, _ = flags.GetBool("anonymous-auth")
	if modes, _ := flags.GetStringSlice("authorization-mode"); slices.Contains(modes, alwaysAllow) {
		a.enabled = false
	}
	if file == nil || file.anonymous() == nil {
		return a
	}
	a.enabled = file.anonymous().Enabled
	for _, condition := range file.anonymous().Conditions {
		a.paths = append(a.paths, condition.Path)
	}
	return a
}

func (a anonymous) allows(path string) bool {
	return a.enabled && (len(a.paths) == 0 || slices.Contains(a.paths, path))
}

// chain calls its methods in order; the first that succeeds determines the user.
type chain struct {
	methods   []method.Method
	audiences []string // of this API
	anonymous anonymous
	revoked   *revocations // nil if they are not looked up
	log       *slog.Logger
}

// Authenticate implements services.Authn. Credentials that a method rejects, and bearer
// tokens that no method accepts, are Unauthorized, even if requests without credentials
// are anonymous. The error is Unreadable if an object cannot be read that decides.
func (a *chain) Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error) {
	refused := c.BearerToken != ""
	if int64(len(c.BearerToken)) > ledger.Token.Bytes {
		c.BearerToken = "" // methods decode it before they know who sent it
	}
	var why string // the client may see it
	for _, m := range a.methods {
		result, err := m.Authenticate(ctx, c)
		if err == nil {
			result.Credential.Method = m.Name()
			return a.complete(ctx, result, c)
		}
		if errors.Is(err, method.ErrNone) {
			continue
		}
		a.log.Debug("credentials refused", "method", m.Name(), "error", err)
		refused = true
		if services.AsInvalidatedToken(err) != nil || services.IsReason(err, services.ReasonUnreadable) {
			return services.Authentication{}, err
		}
		var refusal *method.Refusal
		if errors.As(err, &refusal) {
			why = refusal.Message
		}
	}
	if err := deadline.Ended(ctx); err != nil {
		return services.Authentication{}, err
	}
	if refused || !a.anonymous.allows(c.Path) {
		return services.Authentication{}, services.Unauthorized(why)
	}
	return services.Authentication{
		User:     services.UserInfo{Name: services.UserAnonymous, Groups: []string{services.GroupUnauthenticated}},
		CacheFor: anonymousFor,
	}, nil
}

// complete adds the audiences and the group system:authenticated, and refuses what is revoked.
// Credentials that name no audience are valid for those of this API.
func (a *chain) complete(ctx context.Context, result services.Authentication, c services.Credentials) (services.Authentication, error) {
	if len(result.Audiences) == 0 {
		result.Audiences = method.Shared(method.Wanted(c, a.audiences), a.audiences)
	}
	if len(result.Audiences) == 0 && len(c.Audiences) > 0 {
		return services.Authentication{}, services.Unauthorized("")
	}
	result.User.Groups = withAuthenticated(result.User)
	if a.revoked != nil {
		if err := a.revoked.check(ctx, &result, c.NotOlderThan); err != nil {
			return services.Authentication{}, err
		}
	}
	return result, nil
}

// withAuthenticated returns the groups of a user plus system:authenticated, except for
// users that a trusted proxy declares anonymous or unauthenticated.
func withAuthenticated(u services.UserInfo) []string {
	if u.Name == services.UserAnonymous || slices.Contains(u.Groups, services.GroupAuthenticated) ||
		slices.Contains(u.Groups, services.GroupUnauthenticated) {
		return u.Groups
	}
	return append(slices.Clone(u.Groups), services.GroupAuthenticated)
}

var _ services.Authn = (*chain)(nil)
