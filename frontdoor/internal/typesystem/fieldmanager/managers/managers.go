// Package managers has the rules for the names of field managers, and the names of clients that give
// none.
package managers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/portico-platform/portico/services"
)

// maxName bounds the name of a field manager, in bytes.
const maxName = 128

// FromUserAgent returns the field manager of a request without the parameter
// fieldManager: the printable part of the User-Agent before the first slash, up to 128
// bytes.
func FromUserAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	var b strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > maxName {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Check validates the parameter fieldManager.
func Check(name string) (causes []services.StatusCause) {
	if len(name) > maxName {
		causes = append(causes, services.StatusCause{Reason: services.CauseTooLong, Field: "fieldManager",
			Message: fmt.Sprintf("Too long: may not be more than %d bytes", maxName)})
	}
	for i, r := range name {
		if !unicode.IsPrint(r) {
			causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: "fieldManager",
				Message: fmt.Sprintf("Invalid value: %q: invalid character %#U (at position %d)", name, r, i)})
		}
	}
	return causes
}
