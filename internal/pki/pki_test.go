package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func testSite() Site {
	return Site{
		Server: "https://api.example.com:6443", WorkersServer: "https://frontdoor:6443",
		EtcdMembers: []string{"etcd-1", "10.1.2.3"}, NATSServers: []string{"nats-1", "nats-2"},
		Validity: metav1.Duration{Duration: 90 * 24 * time.Hour}, AuthorityValidity: metav1.Duration{Duration: 365 * 24 * time.Hour},
	}
}

// original is the content of a folder created by Init, once for all tests.
var original = sync.OnceValues(func() (map[string]string, error) {
	parent, err := os.MkdirTemp("", "pki-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "pki")
	if err := Init(dir, testSite()); err != nil {
		return nil, err
	}
	return read(dir)
})

// newPKI returns a copy of the identities for one test.
func newPKI(t *testing.T) *PKI {
	t.Helper()
	files, err := original()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Edit(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// read returns the content of all files below a folder.
func read(dir string) (map[string]string, error) {
	files := map[string]string{}
	return files, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
}

func contents(t *testing.T, p *PKI) map[string]string {
	t.Helper()
	files, err := read(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestOnlyTheOwnerReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Init(dir, testSite()); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachEdgeHasItsAuthority verifies every certificate against every authority: it is
// valid only for its own authority and only for its usages.
func TestEachEdgeHasItsAuthority(t *testing.T) {
	p := newPKI(t)
	for _, f := range p.site.folders() {
		for _, r := range f.certificates {
			cert, err := p.readCertificate(f.name + "/" + r.file + ".crt")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range authorityNames() {
				root, err := p.readCertificate(authorityFile(name, ".crt"))
				if err != nil {
					t.Fatal(err)
				}
				roots := x509.NewCertPool()
				roots.AddCert(root)
				for usage, requested := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: r.server, x509.ExtKeyUsageClientAuth: r.client} {
					_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
					if want := requested && name == r.authority; (err == nil) != want {
						t.Errorf("%s/%s by %s for usage %v: %v, want valid: %v", f.name, r.file, name, usage, err, want)
					}
				}
			}
			if r.authority == peers && !slices.Equal(cert.DNSNames, []string{f.name}) {
				t.Errorf("the peer certificate of %s is for %q", f.name, cert.DNSNames)
			}
		}
	}
}

// TestProxyClient: front doors have the name that authn trusts to name users, and publish the
// authorities that authn verifies users and proxies with.
func TestProxyClient(t *testing.T) {
	p := newPKI(t)
	client, err := p.readCertificate("frontdoor/proxy-client.crt")
	if err != nil {
		t.Fatal(err)
	}
	if client.Subject.CommonName != "front-proxy-client" || len(client.Subject.Organization) > 0 {
		t.Errorf("it is of %v", client.Subject)
	}
	files := contents(t, p)
	for _, file := range []string{"users-ca.crt", "front-proxy-ca.crt"} {
		if files["frontdoor/"+file] == "" || files["frontdoor/"+file] != files["authn/"+file] {
			t.Errorf("%s of front doors is not that of authn", file)
		}
	}
}

// TestNoMonitoringPage: no NATS server shows its connections and users to other users of the machine.
func TestNoMonitoringPage(t *testing.T) {
	servers := 0
	for name, content := range contents(t, newPKI(t)) {
		if !strings.HasSuffix(name, "/server.conf") {
			continue
		}
		servers++
		for line := range strings.Lines(content) {
			for _, setting := range []string{"http", "monitor", "prof_port"} {
				if strings.HasPrefix(strings.TrimSpace(line), setting) {
					t.Errorf("%s has %q", name, line)
				}
			}
		}
	}
	if servers == 0 {
		t.Error("there are no servers")
	}
}

// TestFoldersShareNoSecret compares the keys and seeds of all folders, except the keys of
// service account tokens, which two services need.
func TestFoldersShareNoSecret(t *testing.T) {
	owner := map[string]string{}
	for name, content := range contents(t, newPKI(t)) {
		secret := strings.HasSuffix(name, ".key") || strings.HasSuffix(name, ".seed")
		if !secret || strings.HasPrefix(name, "accounts/") || strings.HasSuffix(name, "/service-account.key") || strings.HasPrefix(name, "authorities/signing.") {
			continue
		}
		if other := owner[content]; other != "" {
			t.Errorf("%s and %s are the same", name, other)
		}
		owner[content] = name
	}
	if len(owner) < 30 {
		t.Errorf("only %d secrets", len(owner))
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	p := newPKI(t)
	before := contents(t, p)
	if err := Init(p.dir, testSite()); err == nil || !strings.Contains(err.Error(), "nothing is overwritten") {
		t.Errorf("a second init: %v", err)
	}
	if err := p.Issue("store", false); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("issue without --replace: %v", err)
	}
	if err := p.Issue("shop", true); err == nil || !strings.Contains(err.Error(), `"watch-hub"`) {
		t.Errorf("issue of an unknown process: %v", err)
	}
	for name, content := range contents(t, p) {
		if before[name] != content {
			t.Errorf("%s has changed", name)
		}
	}
}

func TestIssueReplacesTheSecretsOfOneProcess(t *testing.T) {
	p := newPKI(t)
	before := contents(t, p)
	if err := p.Issue("authz", true); err != nil {
		t.Fatal(err)
	}
	after := contents(t, p)
	changed := []string{}
	for name := range after {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	want := []string{"authz/nats.crt", "authz/nats.key", "authz/nats.seed", "authz/peer.crt", "authz/peer.key", "nats-1/server.conf", "nats-2/server.conf"}
	if !slices.Equal(changed, want) {
		t.Errorf("changed: %q, want %q", changed, want)
	}
	key, err := p.publicKey("authz")
	if err != nil || !strings.Contains(after["nats-2/server.conf"], key) {
		t.Errorf("NATS does not know the new key %s: %v", key, err)
	}
}

func TestRenewal(t *testing.T) {
	p := newPKI(t)
	before := contents(t, p)
	const day = 24 * time.Hour
	if renewed, ending, err := p.Renew(60 * day); err != nil || len(renewed)+len(ending) > 0 {
		t.Fatalf("of new certificates: %v, %v, %v", renewed, ending, err)
	}
	if err := os.RemoveAll(p.path("token-cleaner")); err != nil { // it runs elsewhere
		t.Fatal(err)
	}
	renewed, ending, err := p.Renew(100 * day)
	if err != nil || len(ending) > 0 {
		t.Fatal(renewed, ending, err)
	}
	after := contents(t, p)
	for name, content := range before {
		certificate := strings.HasSuffix(name, ".crt") && !strings.HasSuffix(name, "-ca.crt") && !strings.HasPrefix(name, "authorities/") || name == "admin/kubeconfig"
		if strings.HasPrefix(name, "token-cleaner/") {
			if after[name] != "" {
				t.Errorf("%s was created again", name)
			}
			continue
		}
		if (after[name] != content) != certificate {
			t.Errorf("%s: changed %v, want %v", name, after[name] != content, certificate)
		}
	}
	config, err := clientcmd.Load([]byte(after["admin/kubeconfig"]))
	if err != nil || string(config.AuthInfos["admin"].ClientCertificateData) != after["admin/user.crt"] {
		t.Errorf("the administrator's configuration holds another certificate: %v", err)
	}
	if _, ending, err = p.Renew(400 * day); err != nil || len(ending) != len(authorityNames()) {
		t.Errorf("authorities that end: %q, %v", ending, err)
	}
}

func TestACertificateEndsWithItsAuthority(t *testing.T) {
	p := newPKI(t)
	p.now = func() time.Time { return time.Now().Add(366 * 24 * time.Hour) }
	if err := p.Issue("store", true); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("got %v", err)
	}
}

func TestInspect(t *testing.T) {
	p := newPKI(t)
	var out bytes.Buffer
	found, err := p.Inspect(&out, 24*time.Hour)
	if err != nil || found != (Inspection{}) || !strings.Contains(out.String(), "CN=system:portico:lifecycle") {
		t.Fatalf("%+v, %v:\n%s", found, err, out.String())
	}
	if err := os.Chmod(p.path("store/peer.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found, err = p.Inspect(&out, 100*24*time.Hour); err != nil || found.Ending < 20 || found.Open != 1 || found.Wrong != 0 || !strings.Contains(out.String(), "store/peer.key: mode 0644") {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestInspectFindsWhatDoesNotFit breaks identities in one way each, and names the file.
func TestInspectFindsWhatDoesNotFit(t *testing.T) {
	other := t.TempDir() + "/pki"
	if err := Init(other, testSite()); err != nil {
		t.Fatal(err)
	}
	foreign, err := read(other)
	if err != nil {
		t.Fatal(err)
	}
	files, err := original()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]map[string]string{
		"store/peer.crt: tls: private key does not match": {"store/peer.key": foreign["store/peer.key"]},
		"store/etcd.crt: it has no key":                   {"store/etcd.key": ""},
		"authz/nats.crt: it is not of the authority":      {"authz/nats.crt": foreign["authz/nats.crt"], "authz/nats.key": foreign["authz/nats.key"]},
		// A peer certificate is for servers and clients, the other for clients only.
		"watch-hub/etcd.crt: it is not of the authority \"etcd\"": {"watch-hub/etcd.crt": files["watch-hub/nats.crt"], "watch-hub/etcd.key": files["watch-hub/nats.key"]},
		"authn/users-ca.crt: it differs":                          {"authn/users-ca.crt": foreign["authn/users-ca.crt"]},
		"csr-signer/signing-ca.key: it differs":                   {"csr-signer/signing-ca.key": foreign["csr-signer/signing-ca.key"]},
		"authorities/nodes.crt: tls: private key does not match":  {"authorities/nodes.key": foreign["authorities/nodes.key"]},
		"nats-1/server.conf: not all users":                       {"nats-1/server.conf": foreign["nats-1/server.conf"]},
		"admin/kubeconfig: it has another":                        {"admin/kubeconfig": foreign["admin/kubeconfig"]},
		"admission/.next: a change was interrupted":               {"admission/.next/peer.key": "x"},
		"frontdoor/serving.crt: error reading":                    {"frontdoor/serving.crt": "x"},
		"lifecycle/user.crt: tls: failed to find any PEM data":    {"lifecycle/user.key": "x"},
		"frontdoor/proxy-client.crt: tls: private key does not":   {"frontdoor/proxy-client.crt": files["frontdoor/kubelet.crt"]},
	} {
		p := newPKI(t)
		for name, content := range change {
			path := filepath.Join(p.dir, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
			if content == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if found, err := p.Inspect(&out, 0); err != nil || found.Wrong == 0 || !strings.Contains(out.String(), "\n"+want) {
			t.Errorf("%+v, %v, want %q:\n%s", found, err, want, out.String())
		}
	}
}

// TestNATSPermissionsMatchTheShippedOnes parses the written configuration and the one in
// deploy/nats with NATS: users with the same name have the same permissions.
func TestNATSPermissionsMatchTheShippedOnes(t *testing.T) {
	p := newPKI(t)
	shipped, err := server.ProcessConfigFile("../../deploy/nats/permissions.conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(p.path("nats-1"))
	written, err := server.ProcessConfigFile("server.conf")
	if err != nil {
		t.Fatal(err)
	}
	if len(shipped.Users) != len(written.Nkeys) || len(written.Users) != 0 || written.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert || written.Cluster.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert {
		t.Fatalf("%d users are shipped, %d are written", len(shipped.Users), len(written.Nkeys))
	}
	for _, want := range shipped.Users {
		key, err := p.publicKey(want.Username)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(written.Nkeys, func(u *server.NkeyUser) bool { return u.Nkey == key })
		if i < 0 {
			t.Fatalf("%s is not a user", want.Username)
		}
		got := written.Nkeys[i]
		if !slices.Equal(got.Permissions.Publish.Allow, want.Permissions.Publish.Allow) || !slices.Equal(got.Permissions.Publish.Deny, want.Permissions.Publish.Deny) ||
			!slices.Equal(got.Permissions.Subscribe.Allow, want.Permissions.Subscribe.Allow) || !slices.Equal(got.Permissions.Subscribe.Deny, want.Permissions.Subscribe.Deny) {
			t.Errorf("%s has other permissions", want.Username)
		}
	}
}
