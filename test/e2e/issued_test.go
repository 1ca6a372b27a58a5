package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// issuedSuite is a suite whose processes have nothing but what `portico pki init` has
// made, each its own folder, with three etcd members and three NATS servers.
type issuedSuite struct {
	*suite
	pki    string            // where all identities are
	own    string            // where each process has a copy of its folder
	inside map[string]string // addresses on which members of etcd and NATS meet
}

func memberNames(program string) []string {
	return []string{program + "-1", program + "-2", program + "-3"}
}

func startIssued(t *testing.T, v vocabulary.Vocabulary) *issuedSuite {
	t.Helper()
	s := &issuedSuite{inside: map[string]string{}, own: t.TempDir(), suite: &suite{bin: filepath.Join(root, "bin"), logs: t.TempDir(), data: t.TempDir(), vocabulary: v,
		addresses: map[string]string{}, replicas: map[string][]string{}, processes: map[string]*process{}}}
	packages := []string{"./cmd/portico"}
	for _, p := range programs() {
		packages = append(packages, "./"+p.name+"/cmd/"+p.name)
	}
	for output, packages := range map[string][]string{s.bin + "/": packages,
		s.bin + "/etcd-server": {"go.etcd.io/etcd/server/v3"}, s.bin + "/nats-server": {"github.com/nats-io/nats-server/v2"}} {
		if err := build(root, output, nil, packages...); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range programs() {
		s.add(t, p.name, p.name)
	}
	for _, name := range slices.Concat(memberNames("etcd"), memberNames("nats")) {
		s.add(t, name[:4], name)
		var err error
		if s.inside[name], err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	s.pki = filepath.Join(t.TempDir(), "pki")
	s.manage(t, "init", "--server=https://"+s.addresses["frontdoor"])
	for _, name := range memberNames("etcd") {
		s.startEtcdMember(t, name)
	}
	for _, name := range memberNames("nats") {
		s.startNATSServer(t, name)
	}
	for _, p := range programs() {
		s.startIssuedProgram(t, p)
	}
	return s
}

// manage runs a command of portico pki.
func (s *issuedSuite) manage(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(s.bin, "portico"), append([]string{"pki", command, "--dir=" + s.pki}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("pki %s: %v: %s", command, err, out)
	}
	return string(out)
}

// folder copies the folder of a process to where that process runs.
func (s *issuedSuite) folder(t *testing.T, name string) string {
	t.Helper()
	to := filepath.Join(s.own, name)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(s.pki, name))); err != nil {
		t.Fatal(err)
	}
	return to
}

func (s *issuedSuite) startEtcdMember(t *testing.T, name string) {
	t.Helper()
	dir, members := s.folder(t, name), []string{}
	for _, member := range memberNames("etcd") {
		members = append(members, member+"=https://"+s.inside[member])
	}
	client, peer := "https://"+s.addresses[name], "https://"+s.inside[name]
	s.processes[name] = spawn(t, s.logs, filepath.Join(s.bin, "etcd-server"), "--name="+name, "--data-dir="+filepath.Join(s.data, name), "--log-level=warn",
		"--listen-client-urls="+client, "--listen-client-http-urls=https://127.0.0.1:0", "--advertise-client-urls="+client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster="+strings.Join(members, ","), "--client-cert-auth", "--peer-client-cert-auth",
		"--trusted-ca-file="+dir+"/etcd-ca.crt", "--cert-file="+dir+"/server.crt", "--key-file="+dir+"/server.key",
		"--peer-trusted-ca-file="+dir+"/etcd-peers-ca.crt", "--peer-cert-file="+dir+"/peer.crt", "--peer-key-file="+dir+"/peer.key")
}

// startNATSServer starts one with the configuration that was made, but for the ports.
func (s *issuedSuite) startNATSServer(t *testing.T, name string) {
	t.Helper()
	program, err := filepath.Abs(filepath.Join(s.bin, "nats-server"))
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, other := range memberNames("nats") {
		if other != name {
			routes = append(routes, "tls://"+s.inside[other])
		}
	}
	dir := s.folder(t, name)
	content, err := os.ReadFile(dir + "/server.conf")
	if err != nil {
		t.Fatal(err)
	}
	local := strings.NewReplacer("0.0.0.0:4222", s.addresses[name], "0.0.0.0:6222", s.inside[name]).Replace(string(content))
	if err := os.WriteFile(dir+"/local.conf", []byte(local), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--config=local.conf", "--routes="+strings.Join(routes, ","))
	command.Dir = dir
	s.processes[name] = spawnCommand(t, s.logs, command)
}

// startIssuedProgram starts a service: all files in its flags are in its folder.
func (s *issuedSuite) startIssuedProgram(t *testing.T, p program) {
	t.Helper()
	dir := s.folder(t, p.name)
	args := []string{"--vocabulary=" + s.vocabulary.Name}
	files := map[string]string{}
	if p.offer || len(p.peers) > 0 {
		files["peer-ca-file"], files["peer-cert-file"], files["peer-key-file"] = "peer-ca.crt", "peer.crt", "peer.key"
	}
	if p.offer {
		args = append(args, "--rpc-address="+s.addresses[p.name])
	}
	for _, other := range p.peers {
		args = append(args, "--"+other+"-address="+s.addresses[other])
	}
	urls := func(scheme, program string) string {
		return scheme + strings.ReplaceAll(s.reach(p.name, program), ",", ","+scheme)
	}
	if p.etcd {
		args = append(args, "--etcd-servers="+urls("https://", "etcd"))
		files["etcd-cafile"], files["etcd-certfile"], files["etcd-keyfile"] = "etcd-ca.crt", "etcd.crt", "etcd.key"
	}
	if p.nats {
		args = append(args, "--nats-url="+urls("tls://", "nats"))
		files["nats-ca-file"], files["nats-cert-file"], files["nats-key-file"], files["nats-nkey-seed-file"] = "nats-ca.crt", "nats.crt", "nats.key", "nats.seed"
	}
	switch p.name {
	case "authn":
		files["client-ca-file"], files["requestheader-client-ca-file"], files["service-account-key-file"] = "users-ca.crt", "front-proxy-ca.crt", "service-account.pub"
		args = append(args, "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-allowed-names=front-proxy-client")
	case "frontdoor":
		host, port, _ := net.SplitHostPort(s.addresses[p.name])
		args = append(args, "--bind-address="+host, "--secure-port="+port)
		files["tls-cert-file"], files["tls-private-key-file"] = "serving.crt", "serving.key"
		files["service-account-key-file"], files["service-account-signing-key-file"] = "service-account.pub", "service-account.key"
	case "csr-signer":
		files["kubeconfig"], files["cluster-signing-cert-file"], files["cluster-signing-key-file"] = "kubeconfig", "signing-ca.crt", "signing-ca.key"
	case "token-cleaner":
		files["kubeconfig"] = "kubeconfig"
		args = append(args, "--controllers=*,tokencleaner,bootstrapsigner")
	case "lifecycle":
		files["kubeconfig"], files["service-account-key-file"] = "kubeconfig", "service-account.key"
	}
	for flag, file := range files {
		args = append(args, "--"+flag+"="+filepath.Join(dir, file))
	}
	s.processes[p.name] = spawn(t, s.logs, filepath.Join(s.bin, p.name), args...)
}

// client returns a client of the API with a certificate, or with none.
func (s *issuedSuite) client(t *testing.T, cert string) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(s.pki, "authorities", "serving.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	security := &tls.Config{RootCAs: roots}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(s.pki, cert+".crt"), filepath.Join(s.pki, cert+".key"))
		if err != nil {
			t.Fatal(err)
		}
		// Like an attacker with a stolen certificate, regardless of the CAs that the server accepts.
		security.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: security}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// code returns the code of an answer.
func (s *issuedSuite) code(t *testing.T, client *http.Client, path string, header http.Header) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.addresses["frontdoor"]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// TestIssuedIdentities starts all processes with what portico pki has made. They serve,
// a stolen certificate opens nothing but its own edge, and renewed ones are taken up.
func TestIssuedIdentities(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts fifteen processes")
	}
	t.Parallel()
	s := startIssued(t, vocabulary.Platform())
	admin := s.client(t, "admin/user")
	eventually(t, "the front door is ready", func() bool { return s.code(t, admin, "/readyz", nil) == http.StatusOK })
	t.Run("the administrator's configuration", s.testAdministrator)
	t.Run("workers", s.testWorkers)
	t.Run("stolen at the front door", s.testStolenAtTheDoor)
	t.Run("stolen elsewhere", s.testStolenElsewhere)
	t.Run("stolen on the bus", s.testStolenSeeds)
	t.Run("renewal", s.testRenewal)
	t.Run("members away", s.testMembersAway)
}

// administrator reaches the API with the kubeconfig as it was made.
func (s *issuedSuite) administrator(t *testing.T) *cluster.Cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.pki, "admin", "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if config.CAFile != "" || config.CertFile != "" {
		t.Errorf("the configuration needs the files %q and %q", config.CAFile, config.CertFile)
	}
	c, err := cluster.ConnectAs(config, s.vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *issuedSuite) testAdministrator(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.administrator(t).Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// testWorkers waits for what only workers do: with their own names, they may.
func (s *issuedSuite) testWorkers(t *testing.T) {
	admin := s.client(t, "admin/user")
	eventually(t, "lifecycle has made the default service account", func() bool {
		return s.code(t, admin, "/api/v1/namespaces/default/serviceaccounts/default", nil) == http.StatusOK
	})
	for worker, allowed := range map[string]string{
		"csr-signer":    "/apis/" + s.vocabulary.Group("certificates.") + "/v1/certificatesigningrequests",
		"token-cleaner": "/api/v1/namespaces/" + s.vocabulary.Namespace("system") + "/secrets",
		"lifecycle":     "/api/v1/configmaps",
	} {
		client := s.client(t, worker+"/user")
		if code := s.code(t, client, allowed, nil); code != http.StatusOK {
			t.Errorf("%s: %s: %d", worker, allowed, code)
		}
		forbidden := map[string]string{"csr-signer": "/api/v1/secrets", "token-cleaner": "/api/v1/secrets", "lifecycle": "/metrics"}[worker]
		if code := s.code(t, client, forbidden, nil); code != http.StatusForbidden {
			t.Errorf("%s: %s: %d, want 403", worker, forbidden, code)
		}
	}
}

// certificates returns all that were issued, as in "store/peer", by their authority.
func (s *issuedSuite) certificates(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.pki, "*", "*.crt"))
	if err != nil {
		t.Fatal(err)
	}
	issuers := map[string]string{}
	for _, file := range files {
		name, _ := filepath.Rel(s.pki, strings.TrimSuffix(file, ".crt"))
		if strings.HasSuffix(name, "-ca") || strings.HasPrefix(name, "authorities/") {
			continue
		}
		issuers[name] = strings.TrimPrefix(readCertificate(t, file).Issuer.CommonName, "portico-")
	}
	if len(issuers) < 30 {
		t.Fatalf("only %d certificates", len(issuers))
	}
	return issuers
}

func readCertificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// follow watches for a configmap and closes the channel when it has been added.
func (s *issuedSuite) follow(t *testing.T, c *cluster.Cluster, name string) <-chan struct{} {
	t.Helper()
	seen := make(chan struct{})
	go func() {
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for ; t.Context().Err() == nil; <-ticks.C {
			if added(t.Context(), c, name) {
				close(seen)
				return
			}
		}
	}()
	return seen
}

// added reports whether a watch has shown a configmap before it has ended.
func added(ctx context.Context, c *cluster.Cluster, name string) bool {
	response, err := c.Send(ctx, cluster.Request{Path: "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=30"})
	if err != nil {
		return false
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"ADDED"`) && strings.Contains(lines.Text(), fmt.Sprintf("%q", name)) {
			return true
		}
	}
	return false
}

// memberIsUp reports whether a member of etcd answers what needs all of it.
func (s *issuedSuite) memberIsUp(t *testing.T, name string) bool {
	t.Helper()
	file := func(name string) string { return filepath.Join(s.pki, "admin", name) }
	security, err := (transport.TLSInfo{TrustedCAFile: file("etcd-ca.crt"), CertFile: file("etcd.crt"), KeyFile: file("etcd.key")}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.addresses[name]}, TLS: security, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = client.Get(ctx, "/")
	return err == nil
}

func newName(what string) string { return fmt.Sprintf("%s-%d", what, time.Now().UnixNano()) }
