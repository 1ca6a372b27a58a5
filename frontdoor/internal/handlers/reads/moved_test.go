package reads

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// TestListsOfBeforeAMoveHaveExpired lists custom objects at revisions before their
// relocation: by resourceVersion, and with a token from an earlier release.
func TestListsOfBeforeAMoveHaveExpired(t *testing.T) {
	tokens, err := NewTokens(NewKey())
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{Tokens: tokens, TokenLifetime: time.Minute})
	h.CustomSince = 10
	builtIn := resource.GroupResource{Group: "example.com", Resource: "widgets"}
	custom := builtIn
	custom.Custom = true
	token := func(of *request.Request, revision int64) string {
		token, err := tokens.encode(position{Revision: revision, List: listDigest(of, request.ReadOptions{}), origin: tokens.origin()})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ask := func(custom bool, key resource.GroupResource) *request.Request {
		return &request.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Query: url.Values{},
			Type: &catalogue.Type{Custom: custom, Key: key}, Engine: &typesystem.Engine{}}
	}
	former := ask(false, builtIn) // a custom type's lists had the digest of the built-in type's
	for _, c := range []struct {
		name string
		r    *request.Request
		o    request.ReadOptions
		want string
	}{
		{"exact", ask(true, custom), request.ReadOptions{Match: request.MatchExact, Revision: 9, HasVersion: true}, services.ReasonExpired},
		{"exact since", ask(true, custom), request.ReadOptions{Match: request.MatchExact, Revision: 10, HasVersion: true}, ""},
		{"exact, built in", ask(false, builtIn), request.ReadOptions{Match: request.MatchExact, Revision: 9, HasVersion: true}, ""},
		{"token of an earlier release", ask(true, custom), request.ReadOptions{Token: token(former, 9)}, services.ReasonExpired},
		{"token", ask(true, custom), request.ReadOptions{Token: token(ask(true, custom), 9)}, services.ReasonExpired},
		{"token since", ask(true, custom), request.ReadOptions{Token: token(ask(true, custom), 10)}, ""},
		{"token of the built-in type", ask(true, custom), request.ReadOptions{Token: token(former, 10)}, services.ReasonBadRequest},
		{"not older than", ask(true, custom), request.ReadOptions{Revision: 9, HasVersion: true}, ""},
	} {
		if _, _, err := h.firstPage(c.r, c.o); c.want == "" && err != nil || c.want != "" && !services.IsReason(err, c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
