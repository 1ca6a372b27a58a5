package matrix

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/portico-platform/portico/services/rpc/porticov1"
)

// impersonation shows each header of impersonation in each spelling, by a user who may impersonate
// bob with the group crew, the UID 7 and the scope view, and nothing else.
func (s *scene) impersonation(t *testing.T) *table {
	t.Helper()
	rbac := s.Admin.Vocabulary.Group("rbac.authorization.")
	path := "/apis/" + rbac + "/v1/"
	s.must(t, http.MethodPost, path+"clusterroles", fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"ClusterRole","metadata":{"name":"matrix"},"rules":[
		{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"],"resourceNames":["bob"]},{"apiGroups":[""],"resources":["groups"],"verbs":["impersonate"],"resourceNames":["crew"]},
		{"apiGroups":[%q],"resources":["uids"],"verbs":["impersonate"],"resourceNames":["7"]},{"apiGroups":[%q],"resources":["userextras/scopes"],"verbs":["impersonate"],"resourceNames":["view"]}]}`,
		rbac, s.Admin.Vocabulary.Group("authentication."), s.Admin.Vocabulary.Group("authentication.")))
	s.must(t, http.MethodPost, path+"clusterrolebindings", fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"ClusterRoleBinding","metadata":{"name":"matrix"},
		"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":"matrix"},"subjects":[{"apiGroup":%q,"kind":"User","name":"sam"}]}`, rbac, rbac, rbac))
	as := func(lines ...string) attempt {
		return attempt{headers: append([]string{"Authorization: Bearer " + staticToken}, lines...)}
	}
	s.await(t, as("Impersonate-User: bob"), "bob")
	grid := newTable("header", "allowed", "not allowed", "encoded", "twice, the second not allowed", "other case", "alone")
	for _, c := range []struct{ name, good, bad, encoded string }{
		{"Impersonate-User", "bob", "admin", "b%6Fb"},
		{"Impersonate-Group", "crew", "system:masters", "c%72ew"},
		{"Impersonate-Uid", "7", "8", "%37"},
		{"Impersonate-Extra-Scopes", "view", "all", "vi%65w"},
	} {
		line := func(name, value string) []string {
			if c.name == "Impersonate-User" {
				return []string{name + ": " + value}
			}
			return []string{"Impersonate-User: bob", name + ": " + value}
		}
		try := func(lines ...string) string { return s.outcome(t, as(lines...)) }
		grid.add(c.name, try(line(c.name, c.good)...), try(line(c.name, c.bad)...), try(line(c.name, c.encoded)...),
			try(append(line(c.name, c.good), c.name+": "+c.bad)...), try(line(strings.ToUpper(c.name), c.bad)...), try(c.name+": "+c.good))
	}
	try := s.outcome(t, as("Impersonate-User: bob", "Impersonate-Extra-%53copes: all"))
	grid.add("Impersonate-Extra-%53copes", s.outcome(t, as("Impersonate-User: bob", "Impersonate-Extra-%53copes: view")), try, "–", "–", "–", "–")
	return grid
}

// await waits until an attempt has an outcome.
func (s *scene) await(t *testing.T, shown attempt, want string) {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.outcome(t, shown) != want; <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatalf("%v is not %s", shown.headers, want)
		}
	}
}

// smuggling names users in ways that must not count.
func (s *scene) smuggling(t *testing.T) *table {
	t.Helper()
	proxy, alice := s.proxies.issue(t, s.ProxyName, nil, nil), s.users.issue(t, "alice", nil, nil)
	another, masquerade := s.proxies.issue(t, "another-proxy", nil, nil), s.users.issue(t, s.ProxyName, nil, nil)
	service := s.strangers.issue(t, "frontdoor", nil, nil)
	if s.Peers != nil {
		service = s.peer(t, "frontdoor")
	}
	const user, masters = "X-Remote-User: admin", "X-Remote-Group: system:masters"
	bearer := "Authorization: Bearer " + staticToken
	grid := newTable("request", "user")
	for _, c := range []struct {
		what string
		attempt
	}{
		{"headers of a front proxy, no certificate", attempt{[]string{user, masters}, nil}},
		{"the same beside a token", attempt{[]string{bearer, user, masters}, nil}},
		{"the same beside the certificate of a user", attempt{[]string{user, masters}, &alice}},
		{"the same with a certificate of the front proxies' authority and another name", attempt{[]string{user, masters}, &another}},
		{"the same with a certificate of the users' authority and the name of the front proxy", attempt{[]string{user, masters}, &masquerade}},
		{"the same with the certificate of a service", attempt{[]string{user, masters}, &service}},
		{"a front proxy that names nobody", attempt{nil, &proxy}},
		{"a front proxy that names a group only", attempt{[]string{masters}, &proxy}},
		{"a front proxy that names pat, and then admin", attempt{[]string{"X-Remote-User: pat", user}, &proxy}},
		{"a front proxy that names pat, and admin in another spelling", attempt{[]string{"X-Remote-User: pat", "X_Remote_User: admin"}, &proxy}},
		{"a front proxy that names pat, in a header in lower case", attempt{[]string{"x-remote-user: pat"}, &proxy}},
		{"a front proxy that names pat, impersonating admin", attempt{[]string{"X-Remote-User: pat", "Impersonate-User: admin"}, &proxy}},
		{"a front proxy that names pat, beside a token", attempt{[]string{"X-Remote-User: pat", bearer}, &proxy}},
		{"the certificate of a service", attempt{nil, &service}},
		{"the certificate of a service beside a token", attempt{[]string{bearer}, &service}},
		{"a token in another scheme", attempt{[]string{"Authorization: Basic " + staticToken}, nil}},
		{"a token in the scheme in lower case", attempt{[]string{"authorization: bearer " + staticToken}, nil}},
		{"a token in the header of a proxy", attempt{[]string{"Proxy-Authorization: Bearer " + staticToken}, nil}},
		{"a token in a folded header", attempt{[]string{"Authorization: Bearer", " " + staticToken}, nil}},
		{"a space before the colon", attempt{[]string{"Authorization : Bearer " + staticToken}, nil}},
		{"an address that a client claims", attempt{[]string{"X-Forwarded-For: 127.0.0.1", "X-Real-Ip: 127.0.0.1", "Forwarded: for=127.0.0.1"}, nil}},
	} {
		grid.add(c.what, s.outcome(t, c.attempt))
	}
	return grid
}

// peer returns a certificate of the services' authority.
func (s *scene) peer(t *testing.T, name string) tls.Certificate {
	t.Helper()
	files, err := s.Peers.Authority.Issue(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// ports calls every method of every service with certificates of every kind.
func (s *scene) ports(t *testing.T) *table {
	t.Helper()
	shown := []struct {
		name         string
		certificates []tls.Certificate
	}{
		{"none", nil},
		{"of a user", []tls.Certificate{s.users.issue(t, "frontdoor", nil, nil)}},
		{"of a front proxy", []tls.Certificate{s.proxies.issue(t, s.ProxyName, nil, nil)}},
		{"of another authority", []tls.Certificate{s.strangers.issue(t, "frontdoor", func(c *x509.Certificate) { c.DNSNames = []string{"frontdoor"} }, nil)}},
		{"of the serving authority", []tls.Certificate{s.servingCertificate(t)}},
		{"of a worker", []tls.Certificate{s.peer(t, "csr-signer")}},
		{"of no service", []tls.Certificate{s.peer(t, "nobody")}},
	}
	columns := []string{}
	for _, c := range shown {
		columns = append(columns, c.name)
	}
	grid := newTable("methods of", columns...)
	for _, d := range []grpc.ServiceDesc{porticov1.Store_ServiceDesc, porticov1.WatchHub_ServiceDesc, porticov1.Authn_ServiceDesc, porticov1.Authz_ServiceDesc, porticov1.Admission_ServiceDesc} {
		short := d.ServiceName[strings.LastIndex(d.ServiceName, ".")+1:]
		address := s.Peers.Services[map[bool]string{true: "watch-hub", false: strings.ToLower(short)}[short == "WatchHub"]]
		var cells []string
		for _, c := range shown {
			cells = append(cells, callAll(t, address, c.certificates, d))
		}
		grid.add(short, cells...)
	}
	return grid
}

// servingCertificate returns the certificate that the front door shows its clients.
func (s *scene) servingCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.Admin.Dir+"/pki/serving.crt", s.Admin.Dir+"/pki/serving.key")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return pair
}

// callAll calls all methods and returns the different outcomes.
func callAll(t *testing.T, address string, certificates []tls.Certificate, d grpc.ServiceDesc) string {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // the test is about the other side
	if len(certificates) > 0 {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var outcomes []string
	add := func(err error) {
		outcome := status.Code(err).String()
		switch status.Code(err) {
		case codes.Unavailable:
			outcome = "no connection"
		case codes.PermissionDenied, codes.Unauthenticated:
			outcome = "refused"
		}
		if !slices.Contains(outcomes, outcome) {
			outcomes = append(outcomes, outcome)
		}
	}
	for _, m := range d.Methods {
		add(conn.Invoke(ctx, "/"+d.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	for _, m := range d.Streams {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+d.ServiceName+"/"+m.StreamName)
		if err == nil {
			_ = stream.SendMsg(&emptypb.Empty{}) // the receipt reports the error
			_ = stream.CloseSend()
			err = stream.RecvMsg(&emptypb.Empty{})
		}
		add(err)
	}
	slices.Sort(outcomes)
	return strings.Join(outcomes, ", ")
}
