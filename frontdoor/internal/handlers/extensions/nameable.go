package extensions

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/portico-platform/portico/services"
)

// nameable returns Forbidden (403) for a user whom an extension would know by another name, or as a
// member of another group: what is around the value of a header is removed where it is read, and line
// breaks are replaced where it is written.
func nameable(u services.UserInfo) error {
	refuse := func(what, value string) error {
		if strings.TrimSpace(value) == value && strings.IndexFunc(value, unicode.IsControl) < 0 {
			return nil
		}
		return &services.Status{Code: http.StatusForbidden, Reason: services.ReasonForbidden, Details: &services.StatusDetails{},
			Message: fmt.Sprintf("the request is not forwarded to an extension: %s %.100q begins or ends with white space or has control characters, and would be changed in a header", what, value)}
	}
	if err := refuse("the user name", u.Name); err != nil {
		return err
	}
	for _, group := range u.Groups {
		if err := refuse("the group", group); err != nil {
			return err
		}
	}
	for key, values := range u.Extra {
		for _, value := range values {
			if err := refuse("the value of "+strconv.Quote(key), value); err != nil {
				return err
			}
		}
	}
	return nil
}
