package merge

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/portico-platform/portico/services"
)

// maxManager bounds the name of a field manager, in bytes.
const maxManager = 128

// ManagerFromUserAgent names the manager of a request that does not: what stands
// before the first slash of its User-Agent.
func ManagerFromUserAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	var b strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > maxManager {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// CheckManager checks the request parameter fieldManager of any write.
func CheckManager(name string) error {
	if len(name) > maxManager {
		return invalidOption("fieldManager", services.CauseTooLong, "Too long: may not be more than 128 bytes")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return invalidOption("fieldManager", services.CauseInvalid, "Invalid value: "+quote(name)+": should only contain printable characters")
		}
	}
	return nil
}

// checkOptions checks what depends on the kind of patch.
func checkOptions(r PatchRequest) error {
	if r.MediaType == MediaTypeApply && r.Manager == "" {
		return invalidOption("fieldManager", services.CauseRequired, "Required value: is required for apply patch")
	}
	if r.MediaType != MediaTypeApply && r.Force {
		return invalidOption("force", services.CauseForbidden, "Forbidden: may not be specified for non-apply patch")
	}
	return nil
}

func invalidOption(field, reason, message string) error {
	s := services.Invalid("", "PatchOptions", "", []services.StatusCause{{Reason: reason, Message: message, Field: field}})
	s.Code = http.StatusUnprocessableEntity
	return s
}
