package services

import (
	"errors"
	"strings"

	"github.com/portico-platform/portico/services/resource"
)

// LegacyToken is a service account token in a Secret.
type LegacyToken struct {
	// Secret and UID are those of the Secret.
	Secret resource.Key
	UID    string
	// LastUsed is the label with the date of the last recorded use; empty if there is none.
	LastUsed string
	// Generated is true for a Secret that the account lists, like those that are created with it.
	Generated bool
}

// InvalidatedToken returns the 401 for a token whose Secret is marked as invalid. The front door
// records that it was used, and removes the details, which are not for the client.
func InvalidatedToken(t LegacyToken) *Status {
	s := Unauthorized("")
	s.Details = &StatusDetails{Kind: t.Secret.Resource, Name: t.Secret.Namespace + "/" + t.Secret.Name, UID: t.UID,
		Causes: []StatusCause{{Message: t.LastUsed}}}
	return s
}

// AsInvalidatedToken returns the token of an error of InvalidatedToken; nil for any other error.
func AsInvalidatedToken(err error) *LegacyToken {
	var s *Status
	if !errors.As(err, &s) || s.Reason != ReasonUnauthorized || s.Details == nil || len(s.Details.Causes) != 1 {
		return nil
	}
	namespace, name, _ := strings.Cut(s.Details.Name, "/")
	return &LegacyToken{Secret: resource.Key{GroupResource: resource.GroupResource{Resource: s.Details.Kind}, Namespace: namespace, Name: name},
		UID: s.Details.UID, LastUsed: s.Details.Causes[0].Message}
}
