package permitted

import (
	"context"
	"errors"
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
	mu         sync.Mutex
	namespaces []string
	allowed    []string // namespaces; "" for all
	rules      []string // namespaces with a matching rule that does not allow everything
	incomplete bool     // rules are not known
	down       error
	policy     int64
	authorized int
}

func (c *cluster) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authorized++
	return services.Decision{Allowed: slices.Contains(c.allowed, a.Namespace), Revision: c.policy}, c.down
}

func (c *cluster) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rules := services.Rules{Incomplete: c.incomplete, Resource: []services.ResourceRule{
		{Verbs: []string{"get", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}}
	if slices.Contains(c.allowed, r.Namespace) || slices.Contains(c.rules, r.Namespace) {
		rules.Resource = append(rules.Resource, services.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}})
	}
	return rules, nil
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
	for _, c := range []struct {
		name    string
		cluster *cluster
		all     bool
		want    []string
		decided int // authz, about one namespace or all
		reason  string
	}{
		{"everything", &cluster{namespaces: many, allowed: []string{""}}, true, nil, 1, ""},
		{"nothing", &cluster{namespaces: many[:100]}, false, nil, 1, ""},
		{"some", &cluster{namespaces: []string{"a", "b", "c", "d"}, allowed: []string{"d", "b"}}, false, []string{"b", "d"}, 3, ""},
		{"a rule that does not allow it", &cluster{namespaces: []string{"a", "b"}, rules: []string{"a"}, allowed: []string{"b"}}, false, []string{"b"}, 3, ""},
		{"rules that are not known", &cluster{namespaces: []string{"a", "b", "c"}, incomplete: true, allowed: []string{"c"}}, false, []string{"c"}, 4, ""},
		{"a namespace that does not exist", &cluster{namespaces: []string{"a"}, allowed: []string{"b"}}, false, nil, 1, ""},
		{"many", &cluster{namespaces: many[1:], allowed: many}, false, many[1:], maxNamespaces + 1, ""},
		{"too many", &cluster{namespaces: many, allowed: many}, false, nil, 1, services.ReasonForbidden},
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
		if c.cluster.authorized != c.decided {
			t.Errorf("%s: authz decided %d times, want %d", c.name, c.cluster.authorized, c.decided)
		}
	}
}

func TestEachEndsWithAnError(t *testing.T) {
	var mu sync.Mutex
	visited, bad := 0, errors.New("bad")
	err := each(1_000_000, func(i int) error {
		mu.Lock()
		defer mu.Unlock()
		if visited++; i == 10 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) || visited > 500_000 {
		t.Errorf("%v after %d", err, visited)
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
