package permitted

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// cluster is an authz and a store of namespaces that a test changes.
type cluster struct {
	services.Reader
	services.Authz
	mu         sync.Mutex
	namespaces []string
	allowed    []string // namespaces; "" for all
	down       error
	policy     int64
	authorized int // calls
}

func (c *cluster) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authorized++
	return services.Decision{Allowed: slices.Contains(c.allowed, a.Namespace), Revision: c.policy}, c.down
}

func (c *cluster) AuthorizeBatch(ctx context.Context, requests []services.Attributes) (results []services.AuthzResult, err error) {
	for _, a := range requests {
		d, err := c.Authorize(ctx, a)
		results = append(results, services.AuthzResult{Decision: d, Err: err})
	}
	c.change(func() { c.authorized += 1 - len(requests) })
	return results, nil
}

func (c *cluster) List(_ context.Context, r services.ListRequest) (page services.Page, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.GroupResource.Resource != "namespaces" || r.Read.Mode != services.MostRecent {
		return page, fmt.Errorf("reads %+v", r)
	}
	for _, name := range c.namespaces {
		page.Objects = append(page.Objects, services.Object{Key: resource.Key{GroupResource: r.GroupResource, Name: name}})
	}
	return page, nil
}

func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cluster) Newest() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy
}

func (c *cluster) Unchanged(since int64) bool { return c.Newest() <= since }

func (c *cluster) finder() *Finder { return New(Config{Authz: c, Store: c, Policy: c}) }

var pods = services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: "list", Version: "v1", Resource: "pods"}

func TestFind(t *testing.T) {
	many := make([]string, maxNamespaces+1)
	for i := range many {
		many[i] = fmt.Sprintf("ns%05d", i)
	}
	more := make([]string, 3*maxNamespaces)
	for i := range more {
		more[i] = fmt.Sprintf("other%05d", i)
	}
	for _, c := range []struct {
		name    string
		cluster *cluster
		all     bool
		want    []string
		calls   int // of authz
		reason  string
	}{
		{"everything", &cluster{namespaces: many, allowed: []string{""}}, true, nil, 1, ""},
		{"nothing", &cluster{namespaces: many[:100]}, false, nil, 2, ""},
		{"some", &cluster{namespaces: []string{"a", "b", "c", "d"}, allowed: []string{"d", "b"}}, false, []string{"b", "d"}, 2, ""},
		{"a namespace that does not exist", &cluster{namespaces: []string{"a"}, allowed: []string{"b"}}, false, nil, 2, ""},
		{"many", &cluster{namespaces: many[1:], allowed: many}, false, many[1:], 1 + maxNamespaces/services.MaxAuthzBatch + 1, ""},
		{"a few of many", &cluster{namespaces: slices.Concat(many, more), allowed: []string{more[0], many[7]}}, false, []string{many[7], more[0]},
			1 + (len(many)+len(more)-1)/services.MaxAuthzBatch + 1, ""},
		{"too many", &cluster{namespaces: many, allowed: many}, false, nil, 1 + len(many)/services.MaxAuthzBatch + 1, services.ReasonForbidden},
		{"authz is away", &cluster{namespaces: many[:9], allowed: many, down: services.Unavailable("away")}, false, nil, 1, services.ReasonServiceUnavailable},
	} {
		s, err := c.cluster.finder().Find(t.Context(), pods)
		if c.reason != "" {
			if !services.IsReason(err, c.reason) {
				t.Errorf("%s: %v, want %s", c.name, err, c.reason)
			}
		} else if err != nil || s.All != c.all || !slices.Equal(s.Namespaces, c.want) || !c.all && len(s.Decisions) != len(c.want) {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
		if c.cluster.authorized != c.calls {
			t.Errorf("%s: authz was called %d times, want %d", c.name, c.cluster.authorized, c.calls)
		}
	}
}

func TestDigests(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []*Set{{All: true}, {}, {Namespaces: []string{"a"}}, {Namespaces: []string{"a", "b"}}, {Namespaces: []string{"ab"}}} {
		seen[string(s.Digest())] = true
	}
	if len(seen) != 5 {
		t.Errorf("five sets have %d digests", len(seen))
	}
}

// TestFollow changes policy while a watch is open.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cluster)
		within time.Duration // 0: the watch stays open
	}{
		{"nothing", func(*cluster) {}, 0},
		{"a binding of another user", func(c *cluster) { c.policy++ }, 0},
		{"a new right", func(c *cluster) { c.policy, c.allowed = 11, []string{"a", "b"} }, 2 * time.Second},
		{"a withdrawn right", func(c *cluster) { c.policy, c.allowed = 11, nil }, 2 * time.Second},
		{"a right to all", func(c *cluster) { c.policy, c.allowed = 11, []string{""} }, 2 * time.Second},
		{"a right that no role grants", func(c *cluster) { c.allowed = []string{"a", "b"} }, 40 * time.Second},
		{"an empty new namespace", func(c *cluster) { c.namespaces = []string{"a", "b", "c"} }, 0},
		{"authz is away", func(c *cluster) { c.policy, c.down = 11, services.Unavailable("away") }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &cluster{namespaces: []string{"a", "b"}, allowed: []string{"a"}, policy: 10}
			s, err := w.finder().Find(t.Context(), pods)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Holds(10) || s.Holds(9) {
				t.Error("a watch may continue from the newest role or binding, and not from before")
			}
			ended := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go s.Follow(ctx, func(why error) { ended <- why })
			w.change(func() { c.change(w) })
			began := time.Now()
			select {
			case why := <-ended:
				if c.within == 0 || time.Since(began) > c.within || !services.IsReason(why, services.ReasonExpired) {
					t.Errorf("%s: ended after %v with %v", c.name, time.Since(began), why)
				}
			case <-time.After(time.Minute):
				if c.within != 0 {
					t.Errorf("%s: open after %v", c.name, time.Since(began))
				}
			}
			stop()
			synctest.Wait()
		})
	}
}
