package fairness

import (
	"testing"

	"github.com/portico-platform/portico/services"
)

const stored = `{"metadata": {"name": "shoppers", "uid": "u1"}, "spec": {"matchingPrecedence": 700, "priorityLevelConfiguration": {"name": "busy"},
	"distinguisherMethod": {"type": "ByNamespace"}, "rules": [
	{"subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "shop", "name": "*"}}, {"kind": "User", "user": {"name": "jane"}}],
	 "resourceRules": [
	  {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods", "pods/log"], "namespaces": ["shop"]},
	  {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]},
	  {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "clusterScope": true}],
	 "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version", "/logs/*"]}]}]}}`

func TestClassification(t *testing.T) {
	f, err := ParseFlow([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	level, err := ParseLevel([]byte(`{"metadata": {"name": "busy", "uid": "u2"}, "spec": {"type": "Limited", "limited": {"assuredConcurrencyShares": 7,
		"limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 3, "queueLengthLimit": 9}}}}}`))
	if want := (Level{Name: "busy", UID: "u2", Shares: 7, Borrowing: -1, Queues: 8, Hand: 3, Length: 9}); err != nil || level != want {
		t.Fatalf("parsed %+v, want %+v; error %v", level, want, err)
	}
	later := allUsers("busy")
	later.Precedence = 9000
	dangling := allUsers("missing")
	dangling.Name, dangling.Precedence = "dangling", 2
	s := New(Config{Seats: 10})
	s.Set([]Level{level}, []Flow{later, f, dangling})
	account := services.UserServiceAccountStart + "shop:default"
	for _, c := range []struct {
		user, verb, path, group, resource, sub, namespace string
		want                                              string
	}{
		{"jane", "list", "", "", "pods", "", "shop", "shoppers"},
		{account, "list", "", "", "pods", "", "shop", "shoppers"},
		{account, "list", "", "", "pods", "log", "shop", "shoppers"},
		{"jane", "list", "", "", "pods", "exec", "shop", "all-users"},
		{"jane", "list", "", "", "pods", "", "bank", "all-users"},
		{"jane", "list", "", "", "pods", "", "", "all-users"},
		{"jane", "get", "", "", "pods", "", "shop", "all-users"},
		{"jane", "get", "", "", "nodes", "", "", "shoppers"},
		{"jane", "get", "", "", "nodes", "", "shop", "all-users"},
		{"jane", "delete", "", "apps", "deployments", "scale", "bank", "shoppers"},
		{"jane", "delete", "", "apps", "deployments", "", "", "shoppers"},
		{"joe", "delete", "", "apps", "deployments", "", "", "all-users"},
		{services.UserServiceAccountStart + "shopping:default", "list", "", "", "pods", "", "shop", "all-users"},
		{services.UserServiceAccountStart + "shop", "list", "", "", "pods", "", "shop", "all-users"},
		{"jane", "get", "/version", "", "", "", "", "shoppers"},
		{"jane", "get", "/version/x", "", "", "", "", "shoppers"},
		{"jane", "get", "/versions", "", "", "", "", "all-users"},
		{"jane", "get", "/logs/a", "", "", "", "", "shoppers"},
		{"jane", "post", "/version", "", "", "", "", "all-users"},
	} {
		r := &Request{Attributes: services.Attributes{User: services.UserInfo{Name: c.user}, Verb: c.verb, Path: c.path, Group: c.group, Resource: c.resource,
			Subresource: c.sub, Namespace: c.namespace}}
		if got := s.Classify(r).flow.Name; got != c.want {
			t.Errorf("%+v is in flow %s", c, got)
		}
	}
	flow, uid := s.Classify(&Request{Attributes: services.Attributes{User: services.UserInfo{Name: "jane"}, Verb: "get", Path: "/version"}}).UIDs()
	if flow[0] != "u1" || uid[0] != "u2" {
		t.Errorf("the UIDs are %v and %v", flow, uid)
	}
	if got := s.Classify(of("joe", services.GroupMasters)).flow.Name; got != Exempt {
		t.Errorf("an administrator is in flow %s", got)
	}
	s.Set(nil, nil)
	if got := s.Classify(of("joe")).flow.Name; got != CatchAll {
		t.Errorf("without a configuration a request is in flow %s", got)
	}
}

// TestBrokenLevels: numbers that the API refuses, and that were written to etcd directly, are errors.
func TestBrokenLevels(t *testing.T) {
	for _, raw := range []string{`{`, `{"spec": {"type": "Limited"}}`,
		`{"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}}}}`,
		`{"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 1000000000, "handSize": 1}}}}}`} {
		if l, err := ParseLevel([]byte(raw)); err == nil {
			t.Errorf("%s is accepted as %+v", raw, l)
		}
	}
}

// TestUncontended: a request that need not wait allocates nothing.
func TestUncontended(t *testing.T) {
	s, r, seat := queued(600, 0), of("jane", "system:authenticated"), &Seat{}
	if n := testing.AllocsPerRun(1000, func() { once(t, s, r, seat) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func once(t testing.TB, s *Shares, r *Request, seat *Seat) {
	class := s.Classify(r)
	_, _ = class.UIDs()
	if err := s.Acquire(t.Context(), class, r, seat); err != nil {
		t.Fatal(err)
	}
	seat.Release()
}

func BenchmarkUncontended(b *testing.B) {
	s, r, seat := queued(600, 0), of("jane", "system:authenticated"), &Seat{}
	b.ReportAllocs()
	for b.Loop() {
		once(b, s, r, seat)
	}
}
