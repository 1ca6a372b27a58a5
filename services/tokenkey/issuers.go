package tokenkey

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Issuers returns the issuers of bound service account tokens: the first one issues new
// tokens, the tokens of all are accepted. These are the given ones, or the default if there
// are none. It returns an error for an empty or repeated one, and for one that contains a
// colon and is no URL, since that of a StringOrURI of RFC 7519 must be.
func Issuers(given []string, byDefault string) ([]string, error) {
	if len(given) == 0 {
		return []string{byDefault}, nil
	}
	for i, issuer := range given {
		if issuer == "" {
			return nil, errors.New("an issuer is empty")
		}
		if slices.Contains(given[:i], issuer) {
			return nil, fmt.Errorf("%q is specified twice", issuer)
		}
		if !strings.Contains(issuer, ":") {
			continue
		}
		if _, err := url.Parse(issuer); err != nil {
			return nil, fmt.Errorf("%q contains a colon and is not a URL", issuer)
		}
	}
	return given, nil
}
