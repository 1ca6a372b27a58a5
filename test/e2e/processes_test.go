package e2e

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/internal/home"
	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// program is one process of the suite, with its flags for the addresses of others.
type program struct {
	name    string
	replica string // that the process is, of several of the program; else as name
	bin     string // the folder of the program; empty for that of the suite
	args    []string
	peers   []string // services that it calls
	etcd    bool
	nats    bool
	offer   bool // it answers others
	// descriptors is the limit on open files of the process, if it is not 0.
	descriptors int
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
		{name: "lifecycle", files: map[string]string{"kubeconfig": "workers.kubeconfig", "service-account-key-file": "pki/serving.key"}},
	}
}

// TestProcesses runs the bodies against a suite in which every service, etcd and NATS are
// separate processes, with mutual TLS between them.
func TestProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	s, c := startSuite(t, vocabulary.Platform())
	TestBodies(t, c)
	t.Run("the bus shows and takes nothing", func(t *testing.T) { testBus(t, s, c) })
}

func startSuite(t *testing.T, v vocabulary.Vocabulary) (*suite, *cluster.Cluster) {
	t.Helper()
	s := newSuite(t, v)
	for _, p := range programs() {
		s.start(t, p)
	}
	return s, s.connect(t, "frontdoor")
}

// connect returns the cluster as one of the front doors shows it, once that is ready.
func (s *suite) connect(t *testing.T, frontdoor string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(s.home, s.addresses[frontdoor], s.vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	s.processes[frontdoor].await(t, c)
	return c
}

// suite is what the processes have in common.
type suite struct {
	bin, home, logs, data string
	vocabulary            vocabulary.Vocabulary
	authority             *peertls.Authority
	addresses             map[string]string // by replica
	replicas              map[string][]string
	processes             map[string]*process // by replica
	runOverride           func()              // starts the etcd of startOverride, also again
	overrideData          string              // its folder
	// between, when it is set, returns where one replica reaches another.
	between func(from, to string) string
}

// newSuite builds the programs, makes the files of the suite as the all-in-one's
// home does, and starts etcd and NATS.
func newSuite(t *testing.T, v vocabulary.Vocabulary) *suite {
	t.Helper()
	s := &suite{bin: filepath.Join(root, "bin"), home: filepath.Join(t.TempDir(), "home"), logs: t.TempDir(), data: t.TempDir(), vocabulary: v,
		addresses: map[string]string{}, replicas: map[string][]string{}, processes: map[string]*process{}}
	packages := []string{"./test/e2e/cmd/etcd", "./test/e2e/cmd/nats"}
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
	for _, name := range []string{"etcd", "nats", "frontdoor", "store", "watch-hub", "authn", "authz", "admission"} {
		s.add(t, name, name)
	}
	s.makeHome(t)
	s.startServer(t, "etcd", "-dir", s.data)
	s.startNATS(t)
	return s
}

// add gives a replica of a program its address.
func (s *suite) add(t *testing.T, program, replica string) {
	t.Helper()
	var err error
	if s.addresses[replica], err = loopback.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	s.replicas[program] = append(s.replicas[program], replica)
}

// startServer starts etcd or NATS.
func (s *suite) startServer(t *testing.T, name string, args ...string) {
	t.Helper()
	files := s.issue(t, name, name, "127.0.0.1")
	s.processes[name] = spawn(t, s.logs, filepath.Join(s.bin, name),
		append(args, "-address", s.addresses[name], "-ca", files.CA, "-cert", files.Cert, "-key", files.Key)...)
}

// startNATS starts NATS with the permissions that are shipped.
func (s *suite) startNATS(t *testing.T) {
	t.Helper()
	s.startServer(t, "nats", "-permissions", filepath.Join(root, "deploy/nats/permissions.conf"))
}

// makeHome runs the all-in-one's first service alone: it makes the serving
// certificate, the tokens and the workers' configurations.
func (s *suite) makeHome(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.addresses["frontdoor"])
	if err != nil {
		t.Fatal(err)
	}
	door := run.Service{
		Name: "frontdoor", // its address is reported to home
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

// issue makes a certificate for a replica.
func (s *suite) issue(t *testing.T, replica string, names ...string) peertls.Files {
	t.Helper()
	dir := filepath.Join(s.logs, replica+"-peer")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := s.authority.Issue(dir, names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// reach returns where one replica finds all replicas of a program.
func (s *suite) reach(from, program string) string {
	var addresses []string
	for _, to := range s.replicas[program] {
		address := s.addresses[to]
		if s.between != nil {
			address = s.between(from, to)
		}
		addresses = append(addresses, address)
	}
	return strings.Join(addresses, ",")
}

// start starts one program with the addresses of the others.
func (s *suite) start(t *testing.T, p program) {
	t.Helper()
	replica := cmp.Or(p.replica, p.name)
	args, peer := append(slices.Clone(p.args), "--vocabulary="+s.vocabulary.Name), s.issue(t, replica, p.name)
	if p.offer {
		args = append(args, "--rpc-address="+s.addresses[replica])
	}
	if p.offer || len(p.peers) > 0 {
		args = append(args, peer.Flags()...)
	}
	for _, other := range p.peers {
		args = append(args, "--"+other+"-address="+s.reach(replica, other))
	}
	if p.etcd {
		args = append(args, "--etcd-servers=https://"+strings.ReplaceAll(s.reach(replica, "etcd"), ",", ",https://"), "--etcd-cafile="+peer.CA, "--etcd-certfile="+peer.Cert, "--etcd-keyfile="+peer.Key)
	}
	if p.nats {
		args = append(args, "--nats-url=tls://"+s.reach(replica, "nats"), "--nats-ca-file="+peer.CA, "--nats-cert-file="+peer.Cert, "--nats-key-file="+peer.Key)
	}
	for flag, file := range p.files {
		args = append(args, "--"+flag+"="+filepath.Join(s.home, file))
	}
	if p.name == "frontdoor" {
		host, port, _ := net.SplitHostPort(s.addresses[replica])
		args = append(args, "--bind-address="+host, "--secure-port="+port)
	}
	slices.Sort(args)
	command, logs := exec.Command(filepath.Join(cmp.Or(p.bin, s.bin), p.name), args...), s.logs
	if p.descriptors > 0 {
		command, logs = limited(p.descriptors, command), t.TempDir()
	}
	s.processes[replica] = spawnCommand(t, logs, command)
}
