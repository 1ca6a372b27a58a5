package forwarding

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers/peerstest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	classes = "/apis/storage.k8s.io/v1/volumeattributesclasses" // of 1.36
	pods    = "/api/v1/namespaces/default/pods"                 // of both
)

// frontDoor is a front door with a port, whose requests end in a function.
type frontDoor struct {
	*testing.T
	h       *Handlers
	record  records.Announced
	address string
}

type suite struct{ peerstest.Suite }

func newSuite(t *testing.T) suite {
	t.Helper()
	return suite{peerstest.New(t)}
}

// open opens the port of a front door. serve answers what it serves itself.
func (s suite) open(name, version string, serve func(http.ResponseWriter, *request.Request)) *frontDoor {
	s.Helper()
	r, err := release.Parse(version)
	if err != nil {
		s.Fatal(err)
	}
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: r})
	if err != nil {
		s.Fatal(err)
	}
	engine := &typesystem.Engine{Types: types}
	p := &peers.Peers{Config: peers.Config{Identity: s.Identity(s.Authority, "frontdoor"), Instance: name, Host: name, Release: version, Served: version, Log: slog.New(slog.DiscardHandler), Timeout: time.Minute}}
	d := &frontDoor{T: s.T, h: New(Config{Peers: p, Connections: &connect.Handlers{}, Engine: func() *typesystem.Engine { return engine },
		Header: "X-Kubernetes-Peer-Proxied", Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})}
	p.Answer = func(peers.Question) peers.Answer {
		return peers.Answer{Instance: name, Served: discovery.Served(types)}
	}
	clients, doors := request.Handlers(func(w http.ResponseWriter, r *http.Request, f *request.Forwarded) {
		d.serve(w, &request.Request{Request: r, Forwarded: f}, serve)
	})
	at := s.Serve(p, clients, doors)
	d.address, d.record = at.String(), p.Announced(at, "192.0.2.1")
	return d
}

// serve does what the pipeline does for a request.
func (d *frontDoor) serve(w http.ResponseWriter, r *request.Request, serve func(http.ResponseWriter, *request.Request)) {
	if _, err := r.Identify(d.h.Engine()); err != nil {
		d.Error(err)
	}
	d.h.Route(r)
	r.Audit = &audit.Record{ID: "the-id"}
	w.Header().Set("Audit-Id", "of "+d.h.Peers.Host)
	r.User, r.Caller = services.UserInfo{Name: "client"}, services.UserInfo{Name: "client"}
	if f := r.Forwarded; f != nil {
		r.User, r.Caller, r.Impersonated = f.User, f.Caller, f.Impersonated
	}
	if r.Plain == nil {
		serve(w, r)
		return
	}
	if err := r.Plain(w, r); err != nil {
		status := services.AsStatus(err)
		http.Error(w, status.Message, int(status.Code))
	}
}

// knows makes a front door know others, as if it had read their records and asked them.
func (d *frontDoor) knows(others ...records.Announced) {
	d.Helper()
	d.h.learn(others)
	if !d.h.askAll(d.Context()) {
		d.Error("a front door did not say what it serves")
	}
}

// client sends a request to the port as a client, with headers.
func (d *frontDoor) client(method, path, body string, header http.Header) (int, string, http.Header) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "https://"+d.address+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return answer.StatusCode, string(content), answer.Header
}

// echo answers with what it has been sent.
func echo(name string) func(http.ResponseWriter, *request.Request) {
	return func(w http.ResponseWriter, r *request.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Warning", "from "+name)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Join([]string{name, r.Method, r.URL.RequestURI(), r.User.Name, strings.Join(r.User.Groups, "|"), r.Caller.Name,
			r.Header.Get("Audit-Id"), r.Header.Get("Authorization"), r.Header.Get("X-Portico-Forwarded"), string(body)}, " "))
	}
}

// TestForwarding: a request for a type that only another front door serves is served by that one, in the name of the user.
func TestForwarding(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	old, later := s.open("old", "1.21", echo("old")), s.open("later", "1.36", echo("later"))
	if code, _, _ := old.client(http.MethodGet, classes, "", nil); code != http.StatusNotFound {
		t.Errorf("before the front doors know each other: %d", code)
	}
	old.knows(old.record, later.record, records.Announced{Instance: "same", Served: "1.21", At: "127.0.0.1:1"}, records.Announced{Instance: "earlier"})
	later.knows(old.record, later.record)
	secret := http.Header{"Authorization": {"Bearer secret"}}
	for _, c := range []struct {
		door                     *frontDoor
		method, path, body, want string
	}{
		{old, http.MethodPost, classes + "?dryRun=All", "body", "later POST " + classes + "?dryRun=All client  client the-id   body"},
		{old, http.MethodPatch, pods + "/p/resize", "p", "later PATCH " + pods + "/p/resize client  client the-id   p"},
		{old, http.MethodGet, pods + "/p", "", "old GET " + pods + "/p client  client  Bearer secret  "},
		{later, http.MethodGet, "/apis/policy/v1beta1/podsecuritypolicies", "", "old GET /apis/policy/v1beta1/podsecuritypolicies client  client the-id   "},
		{later, http.MethodPost, classes, "body", "later POST " + classes + " client  client  Bearer secret  body"},
	} {
		code, got, header := c.door.client(c.method, c.path, c.body, secret)
		if code != http.StatusCreated || got != c.want || header.Get("Audit-Id") != "of "+c.door.h.Peers.Host || len(header["Audit-Id"]) != 1 || len(header["Warning"]) != 1 {
			t.Errorf("%s %s: %d %q %v, want %q", c.method, c.path, code, got, header, c.want)
		}
	}
	if code, _, _ := old.client(http.MethodPost, classes, strings.Repeat("x", int(ledger.Body.Bytes)+1), nil); code < 400 {
		t.Errorf("a body that is too large: %d", code)
	}
	if n := testutil.ToFloat64(old.h.metrics.forwarded.WithLabelValues("201", "storage.k8s.io", "v1", "volumeattributesclasses")); n < 1 {
		t.Errorf("%v requests are counted", n)
	}
	old.knows(old.record)
	if code, _, _ := old.client(http.MethodGet, classes, "", nil); code != http.StatusNotFound || old.h.Union() != nil {
		t.Errorf("after the other one has gone: %d", code)
	}
}

// TestIdentityIsKept: names that a header would change arrive as they are.
func TestIdentityIsKept(t *testing.T) {
	user := services.UserInfo{Name: " jane, \u00fc\n", UID: "7", Groups: []string{" system:masters", "a,b", ""}, Extra: map[string][]string{"A/b": {"", " x"}}}
	sent := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil), User: user, Caller: services.UserInfo{Name: "caller"}, Impersonated: true}
	sent.RemoteAddr = "192.0.2.7:1"
	arrived := httptest.NewRequest(http.MethodGet, "/", nil)
	if err := sent.Forward("here", arrived.Header); err != nil {
		t.Fatal(err)
	}
	f, err := request.ReadForwarded(arrived)
	if err != nil || !f.User.Equal(user) || f.Caller.Name != "caller" || !f.Impersonated || f.From != "here" || arrived.RemoteAddr != "192.0.2.7:1" || len(arrived.Header) > 0 {
		t.Errorf("%+v %v %v", f, err, arrived.Header)
	}
	for _, bad := range []string{"", "x", "e30=", "eyJVc2VyIjp7Ik5hbWUiOiJhIn19"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Portico-Forwarded", bad)
		if _, err := request.ReadForwarded(r); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestHeadersOfClients: a client can neither name its user nor have a request served as that of a front door.
func TestHeadersOfClients(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	old, later := s.open("old", "1.21", echo("old")), s.open("later", "1.36", echo("later"))
	old.knows(later.record)
	admin := &request.Request{Request: httptest.NewRequest(http.MethodGet, "/", nil), User: services.UserInfo{Name: "admin"}, Caller: services.UserInfo{Name: "admin"}}
	forged := http.Header{}
	if err := admin.Forward("door", forged); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := later.client(http.MethodGet, classes, "", forged); !strings.Contains(got, " client  client ") {
		t.Errorf("the port of clients: %s", got)
	}
	if _, got, _ := old.client(http.MethodGet, classes, "", forged); !strings.HasPrefix(got, "later GET") || !strings.Contains(got, " client  client ") {
		t.Errorf("handed on: %s", got)
	}
	if code, got, _ := old.client(http.MethodGet, classes, "", http.Header{"Connection": {"X-Portico-Forwarded, Audit-Id"}}); code != http.StatusCreated || !strings.Contains(got, " client  client the-id ") {
		t.Errorf("a client that has headers removed on the way: %d %s", code, got)
	}
	if code, got, _ := old.client(http.MethodGet, classes, "", http.Header{"X-Kubernetes-Peer-Proxied": {"true"}}); code != http.StatusNotFound {
		t.Errorf("a request that says that it was handed on: %d %s", code, got)
	}
}

// TestOnlyFrontDoorsHandRequestsOn: the protocol needs a certificate of a front door, and has no answer without a user.
func TestOnlyFrontDoorsHandRequestsOn(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	later := s.open("later", "1.36", echo("later"))
	const protocol = "portico-frontdoor-requests/1"
	strict := s.Identity(s.Authority, "frontdoor").ClientConfig("frontdoor", protocol)
	for who, c := range map[string]struct {
		change func(*tls.Config)
		want   string
	}{
		"no certificate":                 {func(c *tls.Config) { c.Certificates = nil }, ""},
		"a certificate of authz":         {func(c *tls.Config) { c.Certificates = s.Identity(s.Authority, "authz").ClientConfig("").Certificates }, ""},
		"a certificate of another suite": {func(c *tls.Config) { c.Certificates = s.Identity(s.Public, "frontdoor").ClientConfig("").Certificates }, ""},
		"no user":                        {func(*tls.Config) {}, "400 Bad Request"},
	} {
		config := strict.Clone()
		c.change(config)
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", later.address)
		if err != nil {
			continue // refused in the handshake
		}
		_, _ = io.WriteString(conn, "GET "+classes+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if got, _ := io.ReadAll(conn); !strings.Contains(string(got), c.want) || c.want == "" && len(got) > 0 {
			t.Errorf("%s: %s", who, got)
		}
		_ = conn.Close()
	}
}

// TestNoLoop: a request that has been handed on is not handed on again, although another front door seems to serve its type.
func TestNoLoop(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	one, two := s.open("one", "1.21", echo("one")), s.open("two", "1.21", echo("two"))
	other := func(r records.Announced) records.Announced { r.Served = "something else"; return r }
	for _, d := range []*frontDoor{one, two} {
		types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: release.V136})
		if err != nil {
			t.Fatal(err)
		}
		d.h.Peers.Answer = func(peers.Question) peers.Answer {
			return peers.Answer{Instance: d.h.Peers.Instance, Served: discovery.Served(types)}
		}
	}
	one.knows(other(two.record))
	two.knows(other(one.record))
	if code, got, _ := one.client(http.MethodGet, classes, "", nil); code != http.StatusServiceUnavailable || !strings.Contains(got, "the front door two does not serve") {
		t.Errorf("%d %s", code, got)
	}
}

// TestFrontDoorsThatFail: the next one is asked if one cannot be reached, and 503 is the answer if none can.
func TestFrontDoorsThatFail(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	old, later := s.open("old", "1.21", echo("old")), s.open("later", "1.36", func(http.ResponseWriter, *request.Request) { panic(http.ErrAbortHandler) })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	dead := records.Announced{Instance: "dead", Host: "dead", At: gone.Addr().String(), Served: "x"}
	lost := &other{dead, &answered{}}
	lost.learn(later.h.Peers.Answer(peers.Question{}).Served)
	old.h.others.Store(&[]*other{lost})
	if code, got, _ := old.client(http.MethodPost, classes, "body", nil); code != http.StatusServiceUnavailable || !strings.Contains(got, "no front door") {
		t.Errorf("none can be reached: %d %s", code, got)
	}
	found := &other{later.record, lost.answered}
	old.h.others.Store(&[]*other{lost, {later.record, &answered{groups: lost.groups, targets: lost.targets}}})
	if code, _, _ := old.client(http.MethodPost, classes, "body", nil); code != http.StatusServiceUnavailable {
		t.Errorf("one that breaks off: %d", code)
	}
	if n := testutil.ToFloat64(old.h.metrics.failed.WithLabelValues("proxy_transport", "storage.k8s.io", "v1", "volumeattributesclasses")); n != 1 {
		t.Errorf("%v requests are counted that failed after they were sent", n)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	old.h.Peers.Timeout = 50 * time.Millisecond
	old.h.others.Store(&[]*other{{records.Announced{Instance: "silent", At: silent.Addr().String(), Served: "x"}, &answered{groups: found.groups, targets: found.targets}}})
	if code, _, _ := old.client(http.MethodGet, classes, "", nil); code != http.StatusServiceUnavailable {
		t.Errorf("a silent one: %d", code)
	}
	huge := &other{later.record, &answered{}}
	later.h.Peers.Answer = func(peers.Question) peers.Answer {
		return peers.Answer{Instance: "later", Served: []apidiscovery.APIGroupDiscovery{{Versions: []apidiscovery.APIVersionDiscovery{{Version: strings.Repeat("x", 5<<20)}}}}}
	}
	old.h.Peers.Timeout = time.Minute
	old.h.others.Store(&[]*other{huge})
	if old.h.askAll(t.Context()) || huge.described() != nil {
		t.Error("an answer without bound is taken")
	}
}

// TestUnion: what front doors show together is the same for all of them.
func TestUnion(t *testing.T) {
	var doors []described
	for _, version := range []string{"1.21", "1.36"} {
		r, err := release.Parse(version)
		if err != nil {
			t.Fatal(err)
		}
		types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: r})
		if err != nil {
			t.Fatal(err)
		}
		doors = append(doors, described{version, version, discovery.Served(types)})
	}
	one := union(ordered(doors))
	slices.Reverse(doors)
	if two, err := peers.Digest(union(ordered(doors))); err != nil || two != digest(t, one) {
		t.Error("the order of front doors matters")
	}
	var policy, core []string
	for _, g := range one {
		for _, v := range g.Versions {
			if g.Name == "policy" {
				policy = append(policy, v.Version)
			}
			for _, r := range v.Resources {
				if g.Name == "" && r.Resource == "pods" {
					for _, sub := range r.Subresources {
						core = append(core, sub.Subresource)
					}
				}
			}
		}
	}
	if !slices.Equal(policy, []string{"v1", "v1beta1"}) || !slices.Contains(core, "resize") || !slices.Contains(core, "exec") || !slices.IsSorted(core) {
		t.Errorf("%v %v", policy, core)
	}
	var again bytes.Buffer
	for _, g := range union([][]apidiscovery.APIGroupDiscovery{one, one}) {
		again.WriteString(g.Name)
	}
	if again.Len() == 0 || digest(t, union([][]apidiscovery.APIGroupDiscovery{one, one})) != digest(t, one) {
		t.Error("a union with itself is another one")
	}
}

func digest(t *testing.T, of []apidiscovery.APIGroupDiscovery) string {
	t.Helper()
	d, err := peers.Digest(of)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
