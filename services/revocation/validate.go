package revocation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
)

// maxText bounds each field, in bytes.
const maxText = 1024

// subjects are the fields of which one is set.
func (s *Spec) subjects() []struct{ field, value string } {
	return []struct{ field, value string }{
		{"serial", s.Serial}, {"keyID", s.KeyID}, {"tokenID", s.TokenID}, {"user", s.User}, {"group", s.Group},
	}
}

// Empty reports whether a spec names nothing that is revoked: no valid one does.
func (s *Spec) Empty() bool {
	for _, subject := range s.subjects() {
		if subject.value != "" {
			return false
		}
	}
	return true
}

var hexadecimal = regexp.MustCompile(`\A[0-9a-fA-F]{1,2}(:?[0-9a-fA-F]{1,2})*\z`)

// Problem is a mistake in one field of a spec.
type Problem struct {
	Field, Reason, Message string
	Value                  any
}

// Check returns the mistakes of a spec.
func (s *Spec) Check() (problems []Problem) {
	add := func(field, reason, message string, value any) {
		problems = append(problems, Problem{field, reason, message, value})
	}
	set := 0
	for _, subject := range s.subjects() {
		if subject.value == "" {
			continue
		}
		if set++; len(subject.value) > maxText {
			add(subject.field, services.CauseInvalid, fmt.Sprintf("must have at most %d bytes", maxText), "")
		}
	}
	if set != 1 {
		add("", services.CauseRequired, "exactly one of serial, keyID, tokenID, user and group must be set", nil)
	}
	if s.Serial != "" && (!hexadecimal.MatchString(s.Serial) || canonical(s.Serial) == "") {
		add("serial", services.CauseInvalid, "must be a number in hexadecimal, as in 1f:2e or 1f2e", s.Serial)
	}
	// Requests without credentials are not authenticated: --anonymous-auth turns them off.
	for field, name := range map[string]string{"user": s.User, "group": s.Group} {
		if slices.Contains([]string{services.UserAnonymous, services.GroupUnauthenticated}, name) {
			add(field, services.CauseInvalid, "has no credentials that could be revoked", name)
		}
	}
	if s.IssuedBefore != nil && s.User == "" && s.Group == "" {
		add("issuedBefore", services.CauseInvalid, "is only allowed with user or group", s.IssuedBefore.Format("2006-01-02T15:04:05Z07:00"))
	}
	switch {
	case strings.TrimSpace(s.Reason) == "":
		add("reason", services.CauseRequired, "the reason of the revocation", nil)
	case len(s.Reason) > maxText:
		add("reason", services.CauseInvalid, fmt.Sprintf("must have at most %d bytes", maxText), "")
	}
	return problems
}

// System returns the user or group of the system that the spec names, and the resource for
// authorization: users or groups. ok is false if it names none.
func (s *Spec) System() (resource, name string, ok bool) {
	switch {
	case strings.HasPrefix(s.User, system):
		return "users", s.User, true
	case strings.HasPrefix(s.Group, system):
		return "groups", s.Group, true
	}
	return "", "", false
}

const system = "system:"
