// Package revocation is the schema of Revocations: which credentials authn refuses although
// nothing else is wrong with them. Validation and matching are here and nowhere else: the front
// door validates objects, and authn applies them. It calls no service. It serves section
// "Authentication" of the specification.
package revocation

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
)

// The names of the type, the same in every vocabulary.
const (
	Group    = "access.portico.dev"
	Version  = "v1"
	Kind     = "Revocation"
	Resource = "revocations"
	// Verb is the verb on users and groups that a writer needs whose Revocation names one of
	// the system.
	Verb = "revoke"
)

// Spec names what is revoked. Exactly one of the first five fields is set.
type Spec struct {
	// Serial is the serial number of a client certificate, in hexadecimal.
	Serial string `json:"serial"`
	// KeyID is the subject key ID of certificates, in hexadecimal, or the ID of the key that
	// tokens are signed with.
	KeyID string `json:"keyID"`
	// TokenID is the claim jti of a token, or the ID of a bootstrap token.
	TokenID string `json:"tokenID"`
	User    string `json:"user"`
	Group   string `json:"group"`
	// IssuedBefore limits the Revocation of a user or a group to credentials that were issued
	// before, and to those of which that is not known.
	IssuedBefore *time.Time `json:"issuedBefore"`
	Reason       string     `json:"reason"`
	// Until is when the Revocation ends; never if it is not set.
	Until *time.Time `json:"until"`
	// Created is when the Revocation was created; zero if that is not known.
	Created time.Time `json:"-"`
}

// Decode returns the spec of a stored object.
func Decode(object []byte) (Spec, error) {
	var stored struct {
		Metadata struct {
			Created time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Spec Spec `json:"spec"`
	}
	err := json.Unmarshal(object, &stored)
	stored.Spec.Created = stored.Metadata.Created
	return stored.Spec, err
}

// Revokes reports whether an authentication must be refused at a time.
func (s *Spec) Revokes(a *services.Authentication, now time.Time) bool {
	if s.Ended(now) {
		return false
	}
	c := &a.Credential
	switch {
	case s.Serial != "":
		return c.Serial != "" && canonical(s.Serial) == canonical(c.Serial)
	case s.KeyID != "":
		return c.KeyID != "" && (s.KeyID == c.KeyID || c.Serial != "" && canonical(s.KeyID) == canonical(c.KeyID))
	case s.TokenID != "":
		return s.TokenID == c.TokenID
	case s.User != "":
		return s.User == a.User.Name && s.issued(c)
	case s.Group != "":
		for _, group := range a.User.Groups {
			if group == s.Group {
				return s.issued(c)
			}
		}
	}
	return false
}

// Ended reports whether the Revocation has ended at a time.
func (s *Spec) Ended(now time.Time) bool { return s.Until != nil && !now.Before(*s.Until) }

func (s *Spec) issued(c *services.Credential) bool {
	return s.IssuedBefore == nil || c.Issued.IsZero() || c.Issued.Before(*s.IssuedBefore)
}

// canonical returns a number in hexadecimal without colons, leading zeros and capitals, as
// other tools write it.
func canonical(number string) string {
	return strings.TrimLeft(strings.ToLower(strings.ReplaceAll(number, ":", "")), "0")
}

// Subject returns what the Revocation names, in a form that is the same for all spellings.
func (s *Spec) Subject() string {
	switch {
	case s.Serial != "":
		return "serial " + canonical(s.Serial)
	case s.KeyID != "":
		return "key " + canonical(s.KeyID)
	case s.TokenID != "":
		return "token " + s.TokenID
	case s.User != "":
		return "user " + s.User
	}
	return "group " + s.Group
}

// Subjects returns the Subject of every Revocation that may revoke an authentication.
func Subjects(a *services.Authentication) []string {
	c := &a.Credential
	subjects := []string{"serial " + canonical(c.Serial), "key " + canonical(c.KeyID), "token " + c.TokenID, "user " + a.User.Name}
	for _, group := range a.User.Groups {
		subjects = append(subjects, "group "+group)
	}
	return subjects
}

// Set holds specs, by what they name.
type Set struct{ specs map[string][]Spec }

// NewSet returns a set.
func NewSet(specs []Spec) *Set {
	set := &Set{specs: make(map[string][]Spec, len(specs))}
	for _, s := range specs {
		subject := s.Subject()
		set.specs[subject] = append(set.specs[subject], s)
	}
	return set
}

// Revokes returns the spec by which an authentication must be refused at a time; nil if there
// is none.
func (set *Set) Revokes(a *services.Authentication, now time.Time) *Spec {
	if len(set.specs) == 0 {
		return nil
	}
	for _, subject := range Subjects(a) {
		for i := range set.specs[subject] {
			if s := &set.specs[subject][i]; s.Revokes(a, now) {
				return s
			}
		}
	}
	return nil
}
