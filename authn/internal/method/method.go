// Package method holds the authentication methods, one small file each: static tokens,
// client certificates, trusted proxies, service accounts, bootstrap tokens, OpenID Connect
// and the token webhook. A method handles its own kind of credentials and ignores all
// others. Anonymous access and the group system:authenticated are up to the caller. It
// serves section "Authentication" of the specification.
package method

import (
	"context"
	"errors"
	"slices"

	"github.com/portico-platform/portico/services"
)

// Method authenticates one kind of credentials.
type Method interface {
	// Name is for logs.
	Name() string

	// Authenticate returns the user of the credentials, what they depend on, and those of the
	// requested audiences that they are valid for; none means the audiences of this API. The error is
	// ErrNone if there are no credentials for this method, and any other error if they are
	// invalid or could not be checked.
	Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error)
}

// ErrNone means that there are no credentials for a method.
var ErrNone = errors.New("no credentials for this method")

// Refusal is an error whose message is returned to the client.
type Refusal struct{ Message string }

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Wanted returns the audiences of which credentials must be for one: those that are requested, or those of
// this API.
func Wanted(c services.Credentials, api []string) []string {
	if len(c.Audiences) > 0 {
		return c.Audiences
	}
	return api
}

// Shared returns the items in both lists, in the order of the first.
func Shared(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
