package authfilters

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/live"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// answering authenticates every request with one result.
type answering services.Authentication

func (a answering) Authenticate(context.Context, services.Credentials) (services.Authentication, error) {
	return services.Authentication(a), nil
}

// TestStaleTokens: requests with a token that the client should have replaced have an audit
// annotation, also those whose result is cached.
func TestStaleTokens(t *testing.T) {
	for what, c := range map[string]struct {
		after time.Time
		want  string
	}{
		"never":   {time.Time{}, ""},
		"not yet": {time.Now().Add(time.Hour), ""},
		"stale":   {time.Now().Add(-time.Hour), "subject: system:serviceaccount:a:b, seconds after warning threshold: 36"},
	} {
		control := &Control{Vocabulary: vocabulary.K8s(), Identities: live.NewIdentities(
			answering{User: services.UserInfo{Name: "system:serviceaccount:a:b"}, CacheFor: time.Minute, WarnAfter: c.after})}
		for range 2 {
			r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Audit: &audit.Record{}}
			r.Header.Set("Authorization", "Bearer token")
			stage := control.Authenticated(func(http.ResponseWriter, *request.Request) error { return nil })
			if err := stage(httptest.NewRecorder(), r); err != nil {
				t.Fatal(err)
			}
			got := r.Audit.Annotations()["authentication.k8s.io/stale-token"]
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
}
