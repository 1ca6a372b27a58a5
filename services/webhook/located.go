package webhook

import (
	"net/http"

	"github.com/portico-platform/portico/services/locate"
)

// located sends each request to a server of a Service, so that all of its endpoints get their
// share and one that is gone gets none. The Host header remains the name of the Service.
type located struct {
	*http.Transport
	find   Resolver
	target locate.Reference
}

// RoundTrip implements http.RoundTripper.
func (l *located) RoundTrip(r *http.Request) (*http.Response, error) {
	address, err := l.find(r.Context(), l.target)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	at := *r.URL
	at.Host = address
	sent := r.WithContext(r.Context()) // a copy
	sent.Host, sent.URL = r.URL.Host, &at
	return l.Transport.RoundTrip(sent)
}
