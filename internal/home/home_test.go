package home

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/portico-platform/portico/services/kit/run"
)

// neighbour is a service whose flags are set by package home; seen receives these flags.
func neighbour(seen *pflag.FlagSet) run.Service {
	return run.Service{
		Name: "neighbour",
		Flags: func(fs *pflag.FlagSet) {
			fs.Int("secure-port", 6443, "")
			fs.String("bind-address", "127.0.0.1", "")
			fs.String("tls-cert-file", "", "")
			fs.String("tls-private-key-file", "", "")
			fs.String("kubeconfig", "", "")
			fs.StringSlice("token-auth-file", nil, "")
			fs.StringArray("service-account-key-file", nil, "")
			for _, name := range []string{"proxy-client-cert-file", "proxy-client-key-file", "requestheader-client-ca-file",
				"admission-client-cert-file", "admission-client-key-file"} {
				fs.String(name, "", "")
			}
			for _, name := range []string{"requestheader-allowed-names", "requestheader-username-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix"} {
				fs.StringSlice(name, nil, "")
			}
		},
		Start: func(_ context.Context, n *run.Node) error {
			*seen = *n.Flags
			return nil
		},
	}
}

func startHome(t *testing.T, dir string, args ...string) (*pflag.FlagSet, error) {
	t.Helper()
	seen := &pflag.FlagSet{}
	app := run.App{Name: "test", Services: []run.Service{Service(), neighbour(seen)}}
	running, err := run.Start(t.Context(), app, append([]string{"--data-dir=" + dir}, args...))
	if err == nil {
		running.Stop()
	}
	return seen, err
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", path, info.Mode())
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestLaterStartsKeepTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	flags, err := startHome(t, dir, "--token-auth-file=mine.csv")
	if err != nil {
		t.Fatal(err)
	}
	first := contents(t, dir)
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("data folder: mode %v, want 0700", info.Mode())
	}
	if got, _ := flags.GetStringSlice("token-auth-file"); len(got) != 2 || got[0] != "mine.csv" || got[1] != filepath.Join(dir, tokenFile) {
		t.Errorf("token files are %q, want the user's and the folder's", got)
	}
	if got, _ := flags.GetString("kubeconfig"); got != filepath.Join(dir, workersConfig) {
		t.Errorf("kubeconfig of the workers is %q", got)
	}
	if _, err := startHome(t, dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range contents(t, dir) {
		if first[name] != content {
			t.Errorf("%s was changed by the second start", name)
		}
	}
}

// TestSecondInstanceChangesNothing: a second instance on a folder leaves all files as they are, and says why it ends.
func TestSecondInstanceChangesNothing(t *testing.T) {
	dir := t.TempDir()
	first, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{Service(), neighbour(&pflag.FlagSet{})}}, []string{"--data-dir=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	_, err = startHome(t, dir, "--secure-port=7443")
	if want := "home: data directory " + dir + " is in use by another process"; err == nil || err.Error() != want {
		t.Errorf("the second instance: %v, want %s", err, want)
	}
	if !maps.Equal(contents(t, dir), before) {
		t.Error("the second instance has changed files of the first")
	}
	first.Stop()
	if _, err := startHome(t, dir, "--secure-port=7443"); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
	if maps.Equal(contents(t, dir), before) {
		t.Error("client configurations do not have the new port")
	}
}

func TestAccountTokensAreSignedWithTheServersKey(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"": filepath.Join(dir, servingKey), "--tls-private-key-file=mine.key": "mine.key", "--service-account-key-file=own.key": "own.key",
		"--tls-private-key-file=mine.key --service-account-key-file=own.key": "own.key",
	} {
		flags, err := startHome(t, dir, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := flags.GetStringArray("service-account-key-file"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %s", args, got, want)
		}
	}
}

func TestServingCertificateIsValidForThisMachine(t *testing.T) {
	dir := t.TempDir()
	if _, err := startHome(t, dir, "--bind-address=10.1.2.3"); err != nil {
		t.Fatal(err)
	}
	files := contents(t, dir)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(files[filepath.Join(dir, caCert)]))
	certs, err := cert.ParseCertsPEM([]byte(files[filepath.Join(dir, servingCert)]))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "10.1.2.3"} {
		if _, err := certs[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestServingCertificateIsRenewedWithItsKey(t *testing.T) {
	h, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"localhost"}
	if err := h.makeCertificates(hosts); err != nil {
		t.Fatal(err)
	}
	before := contents(t, h.dir)
	if err := h.makeCertificates(append(hosts, "10.9.9.9")); err != nil {
		t.Fatal(err)
	}
	after := contents(t, h.dir)
	if before[h.path(servingCert)] == after[h.path(servingCert)] {
		t.Error("the certificate was not renewed for a new host")
	}
	if before[h.path(servingKey)] != after[h.path(servingKey)] {
		t.Error("the key was replaced with the certificate")
	}
	if validFor([]byte(after[h.path(servingCert)]), hosts, time.Now().Add(2*leafLife)) {
		t.Error("a certificate is valid after its expiry")
	}
}

func TestClientConfigsFollowTheAddressAndKeepTheRest(t *testing.T) {
	dir := t.TempDir()
	if _, err := startHome(t, dir); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, adminConfig)
	config, err := clientcmd.LoadFromFile(name)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["portico"].Namespace = "mine"
	if err := clientcmd.WriteToFile(*config, name); err != nil {
		t.Fatal(err)
	}
	if _, err := startHome(t, dir, "--secure-port=7443"); err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.LoadFromFile(name); err != nil {
		t.Fatal(err)
	}
	if got := config.Clusters["portico"].Server; got != "https://127.0.0.1:7443" {
		t.Errorf("server is %s after the port was changed", got)
	}
	if config.Contexts["portico"].Namespace != "mine" {
		t.Error("the user's own setting was lost")
	}
}

func TestVocabularyIsFixedForTheLifeOfTheData(t *testing.T) {
	dir := t.TempDir()
	if _, err := startHome(t, dir, "--vocabulary=k8s"); err != nil {
		t.Fatal(err)
	}
	_, err := startHome(t, dir)
	if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), "was created with --vocabulary=k8s") {
		t.Errorf("another vocabulary: got %v, want a usage error that names the first one", err)
	}
}

// TestVocabularyOfTheData: without the flag, the vocabulary is that of the data folder.
func TestVocabularyOfTheData(t *testing.T) {
	dir := t.TempDir()
	if _, err := startHome(t, dir, "--vocabulary=k8s"); err != nil {
		t.Fatal(err)
	}
	app := run.App{Name: "test", Services: []run.Service{Service(), neighbour(&pflag.FlagSet{})}, Defaults: Defaults}
	for want, args := range map[string][]string{"k8s": {"--data-dir=" + dir}, "platform": {"--data-dir=" + t.TempDir()}} {
		app.Services = append(app.Services[:2], run.Service{Name: "last", Start: func(_ context.Context, n *run.Node) error {
			if n.Vocabulary.Name != want {
				t.Errorf("%v: the vocabulary is %s, want %s", args, n.Vocabulary.Name, want)
			}
			return nil
		}})
		running, err := run.Start(t.Context(), app, args)
		if err != nil {
			t.Fatal(err)
		}
		running.Stop()
	}
}

// TestAFailedFirstStartLeavesNothing: neither its files nor its vocabulary, but a later start, or one that has served
// clients, keeps everything.
func TestAFailedFirstStartLeavesNothing(t *testing.T) {
	failing := run.Service{Name: "failing", Start: func(context.Context, *run.Node) error { return errors.New("no") }}
	attempt := func(dir string, served bool) {
		first, serving := Services()
		services := []run.Service{first, neighbour(&pflag.FlagSet{}), failing}
		if served {
			services = []run.Service{first, neighbour(&pflag.FlagSet{}), serving, failing}
		}
		if _, err := run.Start(t.Context(), run.App{Name: "test", Services: services}, []string{"--data-dir=" + dir}); err == nil {
			t.Fatal("the start does not fail")
		}
	}
	missing, empty := filepath.Join(t.TempDir(), "data"), t.TempDir()
	attempt(missing, false)
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	attempt(empty, false)
	if left := contents(t, filepath.Dir(empty)); len(left) > 0 {
		t.Errorf("files are left: %v", slices.Collect(maps.Keys(left)))
	}
	for _, served := range []bool{true, false} { // the second finds the files of the first
		attempt(missing, served)
		if _, err := os.Stat(filepath.Join(missing, adminToken)); err != nil {
			t.Errorf("clients served: %v: %v", served, err)
		}
	}
}

func TestWelcomeLinesCanBePasted(t *testing.T) {
	var out bytes.Buffer
	if err := welcome(&out, "my data", "https://127.0.0.1:6443", "platform"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`--cacert 'my data/pki/ca.crt'`, `$(cat 'my data/admin-token')`, `--kubeconfig 'my data/kubeconfig'`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}
