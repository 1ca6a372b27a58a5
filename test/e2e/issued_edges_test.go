package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/net/http2"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// testStolenAtTheDoor presents every certificate to the front door: those of users
// authenticate, all others are rejected or anonymous, and only the front proxy's can
// authenticate other users.
func (s *issuedSuite) testStolenAtTheDoor(t *testing.T) {
	const path = "/api/v1/namespaces/default/secrets"
	named := http.Header{"X-Remote-User": {"mallory"}, "X-Remote-Group": {"system:masters"}}
	for name, authority := range s.certificates(t) {
		client := s.client(t, name)
		code := s.code(t, client, path, nil)
		switch {
		case name == "admin/user" || name == "lifecycle/user":
			if code != http.StatusOK {
				t.Errorf("%s: %d", name, code)
			}
		case code == http.StatusOK || authority == "users" && code != http.StatusForbidden:
			t.Errorf("%s, signed by %s: %d", name, authority, code)
		}
		if name == "admin/user" || name == "lifecycle/user" {
			continue // they may do this without impersonation
		}
		if code := s.code(t, client, path, named); (code == http.StatusOK) != (authority == "front-proxy") {
			t.Errorf("%s, signed by %s, names a user: %d", name, authority, code)
		}
	}
}

// edge is where a process listens, and who signs those that it lets in.
type edge struct{ name, address, authority string }

func (s *issuedSuite) edges() (all []edge) {
	for _, name := range []string{"store", "watch-hub", "authn", "authz", "admission"} {
		all = append(all, edge{name, s.addresses[name], "peers"})
	}
	return append(all,
		edge{"etcd", s.addresses["etcd-1"], "etcd"}, edge{"etcd's peers", s.inside["etcd-1"], "etcd-peers"},
		edge{"nats", s.addresses["nats-1"], "nats"}, edge{"nats' routes", s.inside["nats-1"], "nats-routes"})
}

// testStolenElsewhere shows every certificate, and none, at every other edge: a
// handshake succeeds with those of its authority alone.
func (s *issuedSuite) testStolenElsewhere(t *testing.T) {
	certificates := s.certificates(t)
	certificates[""] = "nobody"
	tried, let := 0, 0
	var mu sync.Mutex
	for _, e := range s.edges() {
		var group sync.WaitGroup
		for name, authority := range certificates {
			group.Go(func() {
				err := s.knock(e, name)
				mu.Lock()
				defer mu.Unlock()
				if tried++; err == nil {
					let++
				}
				// A NATS server makes no connections with its client certificate.
				wanted := authority == e.authority && !(authority == "nats" && strings.HasSuffix(name, "/server"))
				if (err == nil) != wanted {
					t.Errorf("%q, signed by %s, at %s: %v", name, authority, e.name, err)
				}
			})
		}
		group.Wait()
	}
	if let < 30 || tried < 4*let {
		t.Errorf("%d handshakes, of which %d have succeeded: too few to say anything", tried, let)
	}
}

// knock connects with a certificate. It returns an error if the server rejects it.
func (s *issuedSuite) knock(e edge, cert string) error {
	security := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} // a thief does not mind
	if e.authority == "nats" || e.authority == "nats-routes" {
		security.NextProtos = nil
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(s.pki, cert+".crt"), filepath.Join(s.pki, cert+".key"))
		if err != nil {
			return err
		}
		security.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	conn, err := net.DialTimeout("tcp", e.address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if e.authority == "nats" { // NATS sends its INFO message before TLS
		if _, err := bufio.NewReaderSize(oneByOne{conn}, 16).ReadString('\n'); err != nil {
			return err
		}
	}
	secured := tls.Client(conn, security)
	if err := secured.Handshake(); err != nil {
		return err
	}
	// With TLS 1.3 a server refuses after the client's handshake. One that accepts answers what the
	// client begins with: settings of HTTP/2, or with NATS an error, or information for a route.
	if e.authority == "nats" || e.authority == "nats-routes" {
		_, err = io.WriteString(secured, "PING\r\n")
	} else {
		_, err = io.WriteString(secured, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00") // and no settings
	}
	if err == nil {
		_, err = secured.Read(make([]byte, 1))
	}
	return err
}

// oneByOne reads at most one byte at a time, so that the rest is left for TLS.
type oneByOne struct{ net.Conn }

func (o oneByOne) Read(p []byte) (int, error) { return o.Conn.Read(p[:1]) }

// testStolenSeeds connects to NATS with the certificate of one reader: without a seed the
// connection is rejected, with a reader's it cannot publish, and with the hub's it cannot
// subscribe.
func (s *issuedSuite) testStolenSeeds(t *testing.T) {
	connect := func(certificate, seed string) (*nats.Conn, chan error, error) {
		refused := make(chan error, 10)
		dir := filepath.Join(s.pki, certificate)
		options := []nats.Option{nats.RootCAs(filepath.Join(dir, "nats-ca.crt")), nats.ClientCert(filepath.Join(dir, "nats.crt"), filepath.Join(dir, "nats.key")),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })}
		if seed != "" {
			option, err := nats.NkeyOptionFromSeed(filepath.Join(s.pki, seed, "nats.seed"))
			if err != nil {
				t.Fatal(err)
			}
			options = append(options, option)
		}
		conn, err := nats.Connect("tls://"+s.addresses["nats-1"], options...)
		if err == nil {
			t.Cleanup(conn.Close)
		}
		return conn, refused, err
	}
	if _, _, err := connect("authz", ""); err == nil {
		t.Error("a certificate alone opens NATS")
	}
	for seed, act := range map[string]func(*nats.Conn) error{
		"authz":     func(c *nats.Conn) error { return c.Publish("changes.pods", nil) },
		"frontdoor": func(c *nats.Conn) error { return c.Publish("anything", nil) },
		"admission": func(c *nats.Conn) error { _, err := c.SubscribeSync(">"); return err },
		"watch-hub": func(c *nats.Conn) error { _, err := c.SubscribeSync("changes.>"); return err },
	} {
		conn, refused, err := connect("authz", seed)
		if err != nil {
			t.Errorf("%s: %v", seed, err)
			continue
		}
		if err := act(conn); err != nil {
			t.Fatal(err)
		}
		_ = conn.Flush()
		select {
		case err := <-refused:
			if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				t.Errorf("%s: %v", seed, err)
			}
		case <-time.After(patience):
			t.Errorf("%s may do what it should not", seed)
		}
	}
}

// testRenewal renews all certificates while the processes run: handshakes use the new
// ones, and requests do not fail.
func (s *issuedSuite) testRenewal(t *testing.T) {
	serial := func(address string) string {
		pair, err := tls.LoadX509KeyPair(filepath.Join(s.pki, "frontdoor/peer.crt"), filepath.Join(s.pki, "frontdoor/peer.key"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if out := s.manage(t, "renew", "--days=400"); strings.Count(out, "renewed ") < 30 {
		t.Fatalf("renewed: %s", out)
	}
	for _, p := range programs() {
		s.folder(t, p.name)
	}
	for _, file := range []string{"frontdoor/serving", "store/peer", "authz/peer"} {
		name, _, _ := strings.Cut(file, "/")
		want := readCertificate(t, filepath.Join(s.pki, file+".crt")).SerialNumber.String()
		eventually(t, name+" shows its new certificate", func() bool { return serial(s.addresses[name]) == want })
	}
	if code := s.code(t, s.client(t, "admin/user"), "/readyz", nil); code != http.StatusOK {
		t.Errorf("readiness after renewal: %d", code)
	}
}

// testMembersAway ends one member of etcd and one NATS server at a time, and freezes one member: writes go on,
// and so do their events.
func (s *issuedSuite) testMembersAway(t *testing.T) {
	c := s.administrator(t)
	check := func(what string) {
		t.Helper()
		began, name := time.Now(), newName("away")
		watch := s.follow(t, c, name)
		eventually(t, what+": a write", func() bool {
			a, err := c.Do(t.Context(), cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps", Body: fmt.Sprintf(`{"metadata":{"name":%q}}`, name)})
			return err == nil && (a.Code == http.StatusCreated || a.Code == http.StatusConflict)
		})
		select {
		case <-watch:
			t.Logf("%s: a write and its event after %v", what, time.Since(began).Round(time.Millisecond))
		case <-time.After(patience):
			t.Errorf("%s: no event", what)
		}
	}
	check("all there")
	for _, name := range memberNames("nats") {
		s.processes[name].kill()
		check(name + " away")
		s.startNATSServer(t, name)
		check(name + " back")
	}
	for _, name := range memberNames("etcd") {
		s.processes[name].kill()
		check(name + " away")
		s.startEtcdMember(t, name)
		eventually(t, name+" is a member again", func() bool { return s.memberIsUp(t, name) })
		check(name + " back")
	}
	for _, name := range memberNames("etcd") {
		process := s.processes[name].cmd.Process
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for range 2 * len(memberNames("etcd")) { // by turns, some of these would wait for the member
			check(name + " frozen")
		}
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" responds again", func() bool { return s.memberIsUp(t, name) })
	}
}
