package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/deploy/internal/home"
	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
)

// program is one process of the suite: what it needs to be told of others.
type program struct {
	name  string
	peers []string // services that it calls
	etcd  bool
	nats  bool
	offer bool // it answers others
	// files are flags whose values are files of the home.
	files map[string]string
}

func programs() []program {
	return []program{
		{name: "store", etcd: true, offer: true},
		{name: "watch-hub", etcd: true, nats: true, offer: true},
		{name: "authn", peers: []string{"store"}, offer: true,
			files: map[string]string{"token-auth-file": "tokens.csv", "service-account-key-file": "pki/serving.key"}},
		{name: "authz", peers: []string{"store", "watch-hub"}, nats: true, offer: true},
		{name: "admission", peers: []string{"store", "watch-hub", "authz"}, nats: true, offer: true},
		{name: "frontdoor", peers: []string{"store", "watch-hub", "authn", "authz", "admission"}, nats: true,
			files: map[string]string{"tls-cert-file": "pki/serving.crt", "tls-private-key-file": "pki/serving.key"}},
		{name: "csr-signer", files: map[string]string{"kubeconfig": "workers.kubeconfig",
			"cluster-signing-cert-file": "pki/signing-ca.crt", "cluster-signing-key-file": "pki/signing-ca.key"}},
		{name: "token-cleaner", files: map[string]string{"kubeconfig": "workers.kubeconfig"}},
		{name: "lifecycle", files: map[string]string{"kubeconfig": "workers.kubeconfig"}},
	}
}

// TestProcesses runs the bodies against a suite in which every service, etcd and
// NATS are processes of their own, with mutual TLS between them.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	TestBodies(t, startSuite(t, vocabulary.Platform()))
}

func startSuite(t *testing.T, v vocabulary.Vocabulary) *Cluster {
	t.Helper()
	s := newSuite(t, v)
	for _, p := range programs() {
		s.start(t, p)
	}
	c, err := Connect(s.home, s.addresses["api"], v)
	if err != nil {
		t.Fatal(err)
	}
	s.frontdoor.await(t, c)
	return c
}

// suite is what the processes have in common.
type suite struct {
	bin, home, logs string
	vocabulary      vocabulary.Vocabulary
	authority       *peertls.Authority
	addresses       map[string]string
	frontdoor       *process
}

// newSuite builds the programs, makes the files of the suite as the all-in-one's
// home does, and starts etcd and NATS.
func newSuite(t *testing.T, v vocabulary.Vocabulary) *suite {
	t.Helper()
	s := &suite{bin: filepath.Join(root, "bin"), home: filepath.Join(t.TempDir(), "home"), logs: t.TempDir(), vocabulary: v, addresses: map[string]string{}}
	packages := []string{"./deploy/e2e/cmd/etcd", "./deploy/e2e/cmd/nats"}
	for _, p := range programs() {
		packages = append(packages, "./"+p.name+"/cmd/"+p.name)
	}
	if err := build(root, s.bin+"/", nil, packages...); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.authority, err = peertls.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "nats", "api", "store", "watch-hub", "authn", "authz", "admission"} {
		if s.addresses[name], err = FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	s.makeHome(t)
	etcd, nats := s.issue(t, "etcd", "127.0.0.1"), s.issue(t, "nats", "127.0.0.1")
	spawn(t, s.logs, filepath.Join(s.bin, "etcd"), "-address", s.addresses["etcd"], "-dir", t.TempDir(), "-ca", etcd.CA, "-cert", etcd.Cert, "-key", etcd.Key)
	spawn(t, s.logs, filepath.Join(s.bin, "nats"), "-address", s.addresses["nats"], "-ca", nats.CA, "-cert", nats.Cert, "-key", nats.Key)
	return s
}

// makeHome runs the all-in-one's first service alone: it makes the serving
// certificate, the tokens and the workers' configurations.
func (s *suite) makeHome(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.addresses["api"])
	if err != nil {
		t.Fatal(err)
	}
	door := run.Service{
		Name: "frontdoor", // whose address the home wants to know
		Flags: func(fs *pflag.FlagSet) {
			fs.String("bind-address", "", "")
			fs.Int("secure-port", 0, "")
		},
		Start: func(context.Context, *run.Node) error { return nil },
	}
	running, err := run.Start(context.Background(), run.App{Name: "home", Services: []run.Service{home.Service(), door}},
		[]string{"--data-dir=" + s.home, "--vocabulary=" + s.vocabulary.Name, "--bind-address=" + host, "--secure-port=" + port})
	if err != nil {
		t.Fatal(err)
	}
	running.Stop()
}

func (s *suite) issue(t *testing.T, names ...string) peertls.Files {
	t.Helper()
	dir := filepath.Join(s.logs, names[0]+"-peer")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := s.authority.Issue(dir, names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// start starts one program, told where the others are.
func (s *suite) start(t *testing.T, p program) {
	t.Helper()
	args, peer := []string{"--vocabulary=" + s.vocabulary.Name}, s.issue(t, p.name)
	if p.offer {
		args = append(args, "--rpc-address="+s.addresses[p.name])
	}
	if p.offer || len(p.peers) > 0 {
		args = append(args, peer.Flags()...)
	}
	for _, other := range p.peers {
		args = append(args, "--"+other+"-address="+s.addresses[other])
	}
	if p.etcd {
		args = append(args, "--etcd-servers=https://"+s.addresses["etcd"], "--etcd-cafile="+peer.CA, "--etcd-certfile="+peer.Cert, "--etcd-keyfile="+peer.Key)
	}
	if p.nats {
		args = append(args, "--nats-url=tls://"+s.addresses["nats"], "--nats-ca-file="+peer.CA, "--nats-cert-file="+peer.Cert, "--nats-key-file="+peer.Key)
	}
	for flag, file := range p.files {
		args = append(args, "--"+flag+"="+filepath.Join(s.home, file))
	}
	if p.name == "frontdoor" {
		host, port, _ := net.SplitHostPort(s.addresses["api"])
		args = append(args, "--bind-address="+host, "--secure-port="+port)
	}
	slices.Sort(args)
	started := spawn(t, s.logs, filepath.Join(s.bin, p.name), args...)
	if p.name == "frontdoor" {
		s.frontdoor = started
	}
}
