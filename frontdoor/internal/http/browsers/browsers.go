// Package browsers sets the response headers for clients that are browsers: which web sites
// may use the API (cross-origin resource sharing), and that the host is HTTPS only (RFC 6797).
package browsers

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services/kit/run"
)

// Settings are the flags. Register them before New.
type Settings struct{ origins, transportSecurity []string }

// Register declares the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&s.origins, "cors-allowed-origins", nil, `regular expressions of the origins whose web pages may use the API, as in ^https://console\.example\.com$; without ^ and $ a part of the origin matches`)
	fs.StringSliceVar(&s.transportSecurity, "strict-transport-security-directives", nil, "directives of header Strict-Transport-Security: max-age=<seconds>, includeSubDomains, preload; if empty, the header is not sent")
}

// Headers sets the headers of responses.
type Headers struct {
	origins           []*regexp.Regexp
	transportSecurity string
}

// New returns what the flags say. Invalid flags are usage errors.
func (s *Settings) New() (*Headers, error) {
	h := &Headers{transportSecurity: strings.Join(s.transportSecurity, "; ")}
	for _, origin := range s.origins {
		pattern, err := regexp.Compile(origin)
		if err != nil {
			return nil, run.Usagef("--cors-allowed-origins: %v", err)
		}
		h.origins = append(h.origins, pattern)
	}
	for _, directive := range s.transportSecurity {
		if !validDirective(directive) {
			return nil, run.Usagef("--strict-transport-security-directives: %q is not one of max-age=<seconds>, includeSubDomains, preload", directive)
		}
	}
	return h, nil
}

func validDirective(directive string) bool {
	if directive == "includeSubDomains" || directive == "preload" {
		return true
	}
	seconds, ok := strings.CutPrefix(directive, "max-age=")
	_, err := strconv.ParseUint(seconds, 10, 32)
	return ok && err == nil
}

// crossOrigin are the headers of responses to pages of allowed origins, beside that with the
// origin.
var crossOrigin = map[string]string{
	"Access-Control-Allow-Methods":     "POST, GET, OPTIONS, PUT, DELETE, PATCH",
	"Access-Control-Allow-Headers":     "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
	"Access-Control-Expose-Headers":    "Date",
	"Access-Control-Allow-Credentials": "true",
}

// Set is the stage that sets the headers. It answers preflight requests of allowed origins,
// which have no credentials; those of others get what any request without credentials gets.
func (h *Headers) Set(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if h.transportSecurity != "" {
			w.Header().Set("Strict-Transport-Security", h.transportSecurity)
		}
		origin := r.Header.Get("Origin")
		if origin == "" || !h.allowed(origin) {
			return next(w, r)
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Add("Vary", "Origin")
		for name, value := range crossOrigin {
			w.Header().Set(name, value)
		}
		if r.Method == http.MethodOptions {
			r.Verb = "options"
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return next(w, r)
	}
}

func (h *Headers) allowed(origin string) bool {
	for _, pattern := range h.origins {
		if pattern.MatchString(origin) {
			return true
		}
	}
	return false
}
