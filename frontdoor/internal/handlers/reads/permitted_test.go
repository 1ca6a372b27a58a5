package reads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// shelf is a store with a number of objects in each namespace, in pages of three at most. It
// remembers what was read.
type shelf struct {
	services.Reader
	objects map[string]int
	read    []services.ListRequest
}

func (s *shelf) List(_ context.Context, r services.ListRequest) (page services.Page, err error) {
	s.read = append(s.read, r)
	first := 0
	if r.After != "" {
		_, _ = fmt.Sscanf(r.After, "o%d", &first)
		first++
	}
	limit := 3
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	page.Revision, page.Remaining = 7, 99
	for i := first; i < s.objects[r.Namespace]; i++ {
		if limit--; limit < 0 {
			page.Next = fmt.Sprintf("o%d", i-1)
			break
		}
		page.Objects = append(page.Objects, services.Object{Key: resource.Key{Namespace: r.Namespace, Name: fmt.Sprintf("o%d", i)}})
	}
	return page, nil
}

// TestListsWithinNamespaces reads some namespaces, in chunks of every size.
func TestListsWithinNamespaces(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"empty"}, {"a"}, {"a", "b", "c", "empty", "z"}, {"empty", "none"}, {"b", "hidden-not", "z"}} {
		for limit := range 9 {
			s := &shelf{objects: map[string]int{"a": 4, "b": 1, "c": 3, "hidden": 50, "z": 2}}
			w, want, got := within{s, namespaces}, []string{}, []string{}
			for _, namespace := range namespaces {
				for i := range s.objects[namespace] {
					want = append(want, fmt.Sprintf("%s/o%d", namespace, i))
				}
			}
			r := services.ListRequest{Limit: limit, Read: services.Read{Mode: services.NotOlderThan, Revision: 5}}
			for {
				page, err := w.List(t.Context(), r)
				if err != nil || page.Revision != 7 {
					t.Fatal(page, err)
				}
				if limit > 0 && len(page.Objects) > limit || len(namespaces) > 0 && page.Remaining >= 0 {
					t.Errorf("a chunk of %d has %d objects, and %d remain", limit, len(page.Objects), page.Remaining)
				}
				for _, o := range page.Objects {
					got = append(got, o.Key.Namespace+"/"+o.Key.Name)
				}
				if page.Next == "" {
					break
				}
				r = page.Following(r)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v in chunks of %d: %v, want %v", namespaces, limit, got, want)
			}
			for i, read := range s.read {
				if !slices.Contains(namespaces, read.Namespace) && read.Namespace != noNamespace {
					t.Errorf("read the namespace %q", read.Namespace)
				}
				if (read.Read.Mode == services.Exact) != (i > 0) {
					t.Errorf("read %d has the mode %v", i, read.Read)
				}
			}
		}
	}
}

// TestPermittedTokens uses continue tokens of a list with permitted=true in other lists.
func TestPermittedTokens(t *testing.T) {
	tokens, err := NewTokens(NewKey())
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{Tokens: tokens, TokenLifetime: time.Minute})
	ask := func(user string, namespaces string) *request.Request {
		r := &request.Request{Type: &catalogue.Type{Key: resource.GroupResource{Resource: "pods"}}, User: services.UserInfo{Name: user}}
		if namespaces != "" {
			r.Permitted = &permitted.Set{Namespaces: strings.Split(namespaces, ",")}
		}
		return r
	}
	jane := ask("jane", "a,b")
	token, err := tokens.encode(position{Revision: 7, After: "a/x", List: listDigest(jane, request.ReadOptions{}), origin: tokens.origin(), Permitted: permittedDigest(jane)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		r      *request.Request
		reason string
	}{
		{"the same list", ask("jane", "a,b"), ""},
		{"another user", ask("joe", "a,b"), services.ReasonBadRequest},
		{"an ordinary list", ask("jane", ""), services.ReasonBadRequest},
		{"fewer namespaces", ask("jane", "a"), services.ReasonExpired},
		{"more namespaces", ask("jane", "a,b,c"), services.ReasonExpired},
	} {
		_, _, err := h.firstPage(c.r, request.ReadOptions{Token: token})
		if c.reason == "" && err != nil || c.reason != "" && !services.IsReason(err, c.reason) {
			t.Errorf("%s: %v, want %s", c.name, err, c.reason)
		}
	}
}
