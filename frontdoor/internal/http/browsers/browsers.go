// Package browsers decides what browsers may do with the API: the response headers that say which web
// sites may use it (cross-origin resource sharing) and that the host is HTTPS only (RFC 6797), and the
// stages that refuse what pages of other sites make browsers send with the credentials of their user.
package browsers

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services/kit/run"
)

// Settings are the flags. Register them before New.
type Settings struct {
	origins, transportSecurity, hosts []string
	consoleHost                       string
}

// Register declares the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&s.origins, "cors-allowed-origins", nil, `regular expressions of the origins whose web pages may use the API, as in ^https://console\.example\.com$; without ^ and $ a part of the origin matches`)
	fs.StringSliceVar(&s.hosts, "browser-hosts", nil, "host names, such as that of a load balancer, by which browsers reach this front door in addition to those of its serving certificates")
	fs.StringVar(&s.consoleHost, "console-host", "", "host name of the web console only: its pages are then served for no other host, and for this host neither extensions nor connections to nodes, pods and services; if empty, the console shares the host of the API")
	fs.StringSliceVar(&s.transportSecurity, "strict-transport-security-directives", nil, "directives of header Strict-Transport-Security: max-age=<seconds>, includeSubDomains, preload; if empty, the header is not sent")
}

// Headers sets the headers of responses, and checks those of requests.
type Headers struct {
	// Names reports whether a host name is one of the front door's; nil for none.
	Names func(host string) bool
	// ConsoleHost is the host name of the console, in lower case; empty if it has none of its own.
	ConsoleHost string

	origins           []*regexp.Regexp
	transportSecurity string
	hosts             map[string]bool
}

// New returns what the flags say. Invalid flags are usage errors.
func (s *Settings) New() (*Headers, error) {
	h := &Headers{transportSecurity: strings.Join(s.transportSecurity, "; "), ConsoleHost: strings.ToLower(s.consoleHost), hosts: map[string]bool{}}
	if why := validation.IsDNS1123Subdomain(h.ConsoleHost); h.ConsoleHost != "" && len(why) > 0 {
		return nil, run.Usagef("--console-host: %q is not a host name", s.consoleHost)
	}
	for _, host := range s.hosts {
		host = strings.ToLower(host)
		if why := validation.IsDNS1123Subdomain(host); len(why) > 0 {
			return nil, run.Usagef("--browser-hosts: %q is not a host name", host)
		}
		h.hosts[host] = true
	}
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
