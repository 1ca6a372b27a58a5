package services_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
)

// batching is an Authz that knows batches, and notes how long each is.
type batching struct {
	services.Authz
	lengths []int
	err     error
}

func (b *batching) AuthorizeBatch(_ context.Context, requests []services.Attributes) (results []services.AuthzResult, err error) {
	b.lengths = append(b.lengths, len(requests))
	for _, r := range requests {
		results = append(results, services.AuthzResult{Decision: services.Decision{Reason: r.Name}})
	}
	return results, b.err
}

// slow is an Authz that answers after a time, with the name of the request.
type slow struct {
	services.Authz
	after time.Duration
}

func (s slow) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	select {
	case <-time.After(s.after):
		return services.Decision{Reason: a.Name}, nil
	case <-ctx.Done():
		return services.Decision{}, ctx.Err()
	}
}

func numbered(n int, user services.UserInfo) (list []services.Attributes) {
	for i := range n {
		list = append(list, services.Attributes{User: user, Name: strconv.Itoa(i)})
	}
	return list
}

// TestAuthorizeAll: batches are bounded in number and bytes, and results keep the order.
func TestAuthorizeAll(t *testing.T) {
	long := services.UserInfo{Groups: []string{strings.Repeat("g", 400<<10)}, Extra: map[string][]string{"k": {strings.Repeat("v", 100<<10)}}}
	huge := services.UserInfo{Name: strings.Repeat("n", 2<<20)}
	for name, c := range map[string]struct {
		requests []services.Attributes
		lengths  []int
	}{
		"none":             {nil, nil},
		"one":              {numbered(1, services.UserInfo{}), []int{1}},
		"as many as fit":   {numbered(256, services.UserInfo{}), []int{256}},
		"more":             {numbered(600, services.UserInfo{}), []int{256, 256, 88}},
		"long ones":        {numbered(5, long), []int{2, 2, 1}},
		"long selectors":   {selecting(numbered(5, services.UserInfo{}), strings.Repeat("x", 400<<10)), []int{2, 2, 1}},
		"one that is huge": {append(numbered(2, huge), numbered(2, services.UserInfo{})...), []int{1, 1, 2}},
	} {
		b := &batching{}
		results := services.AuthorizeAll(t.Context(), b, c.requests)
		if len(results) != len(c.requests) || len(b.lengths) != len(c.lengths) {
			t.Errorf("%s: %d results for %d requests, batches %v", name, len(results), len(c.requests), b.lengths)
			continue
		}
		for i := range c.lengths {
			if b.lengths[i] != c.lengths[i] {
				t.Errorf("%s: batches %v, want %v", name, b.lengths, c.lengths)
			}
		}
		for i, r := range results {
			if r.Reason != c.requests[i].Name || r.Err != nil {
				t.Fatalf("%s: result %d is %+v", name, i, r)
			}
		}
	}
	away := &batching{err: services.Unavailable("away")}
	for _, r := range services.AuthorizeAll(t.Context(), away, numbered(300, services.UserInfo{})) {
		if !services.IsReason(r.Err, services.ReasonServiceUnavailable) {
			t.Fatalf("authz is away: %+v", r)
		}
	}
}

// selecting adds a label selector to requests.
func selecting(requests []services.Attributes, selector string) []services.Attributes {
	for i := range requests {
		requests[i].LabelSelector = selector
	}
	return requests
}

// TestAuthorizeAllWithoutBatches: an Authz without batches, and one of an older release, is asked
// about each request; what it decides in time is returned although not all of it is.
func TestAuthorizeAllWithoutBatches(t *testing.T) {
	type older struct {
		slow
		services.AuthzBatch
	}
	synctest.Test(t, func(t *testing.T) {
		single := slow{after: time.Second}
		for _, authz := range []services.Authz{single, older{single, &batching{err: services.ErrNoBatch}}} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			results := services.AuthorizeAll(ctx, authz, numbered(100, services.UserInfo{}))
			if ctx.Err() != nil {
				t.Error("the results come too late for the caller")
			}
			cancel()
			decided := 0
			for i, r := range results {
				switch {
				case r.Err == nil && r.Reason == strconv.Itoa(i):
					decided++
				case !errors.Is(r.Err, context.DeadlineExceeded):
					t.Errorf("result %d is %+v", i, r)
				}
			}
			if decided < 3*16 || decided == 100 {
				t.Errorf("%d are decided", decided)
			}
		}
	})
}
