package bus_test

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// shipped is the folder of the configuration for operators.
const shipped = "../../../deploy/nats/"

// configured starts a server with the permissions of a configuration file.
func configured(t *testing.T, file string, tls *peertls.Files) string {
	t.Helper()
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.NoSigs, options.NoLog = "127.0.0.1", -1, true, true
	if tls != nil {
		options.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: tls.Cert, KeyFile: tls.Key, CaFile: tls.CA, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		options.TLS, options.TLSVerify, options.TLSMap = true, true, true
	}
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testTimeout) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// permitted checks that readers receive what the hub publishes, and that all other
// publishing and subscribing is denied.
func permitted(t *testing.T, hub *nats.Conn, readers map[string]*nats.Conn) {
	t.Helper()
	hubErrors := errorsOf(hub)
	for name, reader := range readers {
		failures := errorsOf(reader)
		sub, err := reader.SubscribeSync("changes.core.pods")
		if err != nil {
			t.Fatal(err)
		}
		flush(t, reader)
		if err := reader.Publish("changes.core.pods", []byte("forged")); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, name+" publishes", failures)
		for _, subject := range []string{">", "$SYS.>", "*.core.pods", "hubs.heartbeat"} {
			if _, err := reader.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			wantViolation(t, name+" subscribes to "+subject, failures)
		}
		if err := hub.Publish("changes.core.pods", []byte("genuine")); err != nil {
			t.Fatal(err)
		}
		flush(t, hub)
		if m, err := sub.NextMsg(testTimeout); err != nil || string(m.Data) != "genuine" {
			t.Errorf("%s received %v, %v", name, m, err)
		}
	}
	if _, err := hub.SubscribeSync("changes.>"); err != nil {
		t.Fatal(err)
	}
	wantViolation(t, "the hub subscribes", hubErrors)
	heartbeats, err := hub.SubscribeSync("hubs.heartbeat")
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Publish("hubs.heartbeat", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := heartbeats.NextMsg(testTimeout); err != nil {
		t.Errorf("the hub does not receive heartbeats: %v", err)
	}
	if err := hub.Publish("elsewhere", nil); err != nil {
		t.Fatal(err)
	}
	wantViolation(t, "the hub publishes elsewhere", hubErrors)
}

func flush(t *testing.T, conn *nats.Conn) {
	t.Helper()
	if err := conn.FlushTimeout(testTimeout); err != nil {
		t.Fatal(err)
	}
}

func errorsOf(conn *nats.Conn) <-chan error {
	failures := make(chan error, 100)
	conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { failures <- err })
	return failures
}

func wantViolation(t *testing.T, what string, failures <-chan error) {
	t.Helper()
	select {
	case err := <-failures:
		if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(testTimeout):
		t.Errorf("%s: allowed", what)
	}
}

func TestShippedPermissions(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	issue := func(names ...string) peertls.Files {
		files, err := authority.Issue(t.TempDir(), names...)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	serverFiles := issue("nats", "127.0.0.1")
	at := configured(t, shipped+"permissions.conf", &serverFiles)
	connect := func(name string) (*nats.Conn, error) {
		files := issue(name)
		conn, _, err := use(t, "--nats-url="+at, "--nats-ca-file="+files.CA, "--nats-cert-file="+files.Cert, "--nats-key-file="+files.Key)
		if err == nil && !conn.IsConnected() {
			err = cmp.Or(conn.LastError(), nats.ErrDisconnected)
			conn.Close()
		}
		return conn, err
	}
	hub, err := connect("watch-hub")
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]*nats.Conn{}
	for _, name := range []string{"frontdoor", "authz", "admission"} {
		if readers[name], err = connect(name); err != nil {
			t.Fatal(err)
		}
	}
	permitted(t, hub, readers)
	for _, name := range []string{"authn", "store", "nobody"} {
		if _, err := connect(name); err == nil {
			t.Errorf("%s can connect", name)
		}
	}
}

// TestShippedPermissionsWithNkeys checks the same permissions for users with nkeys.
func TestShippedPermissionsWithNkeys(t *testing.T) {
	content, err := os.ReadFile(shipped + "permissions.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir, config := t.TempDir(), string(content)
	seeds := map[string]string{}
	for _, name := range []string{"watch-hub", "frontdoor", "authz", "admission", "nobody"} {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := pair.PublicKey()
		seed, _ := pair.Seed()
		config = strings.Replace(config, fmt.Sprintf("{ user: %q,", name), fmt.Sprintf("{ nkey: %q,", public), 1)
		seeds[name] = filepath.Join(dir, name+".nk")
		if err := os.WriteFile(seeds[name], seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at := configured(t, file, nil)
	connect := func(name string) *nats.Conn {
		conn, _, err := use(t, "--nats-url="+at, "--nats-nkey-seed-file="+seeds[name])
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	readers := map[string]*nats.Conn{"frontdoor": connect("frontdoor"), "authz": connect("authz")}
	permitted(t, connect("watch-hub"), readers)
	if connect("nobody").IsConnected() {
		t.Error("an unknown user can connect")
	}
}

// TestShippedServer loads the whole configuration with certificates.
func TestShippedServer(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := authority.Issue(dir, "nats", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.conf", "permissions.conf"} {
		content, err := os.ReadFile(shipped + name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`"peers-ca.crt"`, fmt.Sprintf("%q", files.CA), `"nats.crt"`, fmt.Sprintf("%q", files.Cert),
			`"nats.key"`, fmt.Sprintf("%q", files.Key)).Replace(string(content))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := configured(t, filepath.Join(dir, "server.conf"), nil)
	if u, err := url.Parse(at); err != nil || u.Scheme != "tls" {
		t.Errorf("the server listens at %s, want TLS", at)
	}
	client, err := authority.Issue(t.TempDir(), "watch-hub")
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := use(t, "--nats-url="+at, "--nats-ca-file="+client.CA, "--nats-cert-file="+client.Cert, "--nats-key-file="+client.Key)
	if err != nil || !conn.IsConnected() {
		t.Errorf("the hub cannot connect: %v, %v", err, conn.LastError())
	}
}
