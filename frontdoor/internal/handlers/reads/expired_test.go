package reads

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/outcome"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// changing is a store whose history is compacted at each revision: only the current one can be
// read.
type changing struct {
	services.Store
	revision int64
	names    []string
}

func (s *changing) List(_ context.Context, r services.ListRequest) (page services.Page, err error) {
	if r.Read.Mode == services.Exact && r.Read.Revision != s.revision {
		return page, services.Expired("compacted")
	}
	page.Revision = s.revision
	for _, name := range s.names {
		if name <= r.After {
			continue
		}
		if len(page.Objects) == r.Limit {
			page.Next = page.Objects[r.Limit-1].Key.Name
			page.Remaining++
			continue
		}
		page.Objects = append(page.Objects, services.Object{Key: resource.Key{Name: name}})
	}
	return page, nil
}

// TestExpiredTokens: the error of an expired token has one that continues the list after the same
// object, at the revision of the next chunk.
func TestExpiredTokens(t *testing.T) {
	tokens, err := NewTokens(NewKey())
	if err != nil {
		t.Fatal(err)
	}
	store := &changing{revision: 7, names: []string{"a", "b", "c", "d", "e", "f", "g"}}
	open := func(lifetime time.Duration, token string) (l *Listing, names []string, err error) {
		h := New(Config{Tokens: tokens, TokenLifetime: lifetime, Store: store})
		q := url.Values{"limit": {"2"}, "continue": {token}}
		r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/?"+q.Encode(), nil), Query: q,
			Type: &catalogue.Type{Key: resource.GroupResource{Resource: "configmaps"}}, Engine: &typesystem.Engine{}}
		l, err = h.Open(r)
		if err == nil {
			err = l.Pages(t.Context(), func(page []services.Object) error {
				for _, o := range page {
					names = append(names, o.Key.Name)
				}
				return nil
			})
		}
		return l, names, err
	}
	chunk := func(token string, revision, left int64, want ...string) (next string) {
		t.Helper()
		l, names, err := open(time.Minute, token)
		if err != nil || !slices.Equal(names, want) || l.Meta.Revision != revision || (l.Meta.Remaining == nil) != (left == 0) || left > 0 && *l.Meta.Remaining != left {
			t.Fatalf("%q, %+v, %v; want %q at %d and %d more", names, l, err, want, revision, left)
		}
		return l.Meta.Continue
	}
	expired := func(lifetime time.Duration, token string) (next string) {
		t.Helper()
		_, _, err := open(lifetime, token)
		status := outcome.Of(err)
		if status.Reason != services.ReasonExpired || status.Code != 410 || status.Continue == "" {
			t.Fatalf("%+v, want Expired with a token", status)
		}
		return status.Continue
	}
	first := chunk("", 7, 5, "a", "b")
	late := expired(-time.Second, first) // the list began too long ago
	store.revision, store.names = 9, []string{"a", "aa", "c", "d", "dd", "e", "f"}
	compacted := expired(time.Minute, first)
	for _, token := range []string{late, compacted} {
		next := chunk(token, 9, 3, "c", "d")
		next = chunk(next, 9, 1, "dd", "e")
		chunk(next, 9, 0, "f")
	}
	next := chunk(compacted, 9, 3, "c", "d")
	store.revision = 11 // these chunks are consistent, and can expire again
	chunk(expired(time.Minute, next), 11, 1, "dd", "e")
	if _, _, err := open(time.Minute, fmt.Sprint(compacted, "x")); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("a changed token: %v", err)
	}
}
