// Package method holds the ways to prove an identity, one small file each: static
// tokens, client certificates, trusted proxies, service accounts, bootstrap
// tokens, OpenID Connect and the token webhook. A method decides about the
// credentials that are its own and passes over all others. It never decides
// about anonymous access or the groups that everybody gets; the chain does. It
// serves section "Authentication" of the specification.
package method

import (
	"context"
	"errors"
	"slices"

	"github.com/portico-platform/portico/services"
)

// Method is one way to prove an identity.
type Method interface {
	// Name is for logs.
	Name() string

	// Authenticate returns the identity that the credentials prove, with the
	// audiences among the wanted ones that they are for; none means that they are
	// for this API. ErrNone when they hold nothing that this method knows; any
	// other error when they do and it is not valid.
	Authenticate(ctx context.Context, c services.Credentials) (services.Authentication, error)
}

// ErrNone says that the credentials hold nothing for a method.
var ErrNone = errors.New("no credentials for this method")

// Refusal is an error whose text the client may see.
type Refusal struct{ Message string }

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Shared returns what is in both lists, in the order of the first.
func Shared(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
