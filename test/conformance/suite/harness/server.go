package harness

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config is one set of server flags; its checks share one running server.
type Config struct {
	Name  string
	Flags func(f *Fixtures, dir string) []string
	Ready string // path that answers 200 when the server can be used; default /readyz
	// PlatformOnly is the reason why the oracle cannot run this configuration.
	PlatformOnly string
	// Before runs once on the started server. If Restart is set, the server is
	// then stopped and started again on the same data before the checks run.
	Before  func(t *T)
	Restart bool
}

// Server is a started server process.
type Server struct {
	URL   string
	Fix   *Fixtures
	Notes Obj // left by Config.Before for the checks

	config *Config
	dir    string
	port   int
	cmd    *exec.Cmd
	log    string
	done   chan struct{}
	exit   error
}

// Admin is the administrator: a static token in group system:masters.
func (s *Server) Admin() Identity { return Identity{Token: s.Fix.AdminToken, Name: "admin"} }

// Ended returns how the process ended, or "" while it runs.
func (s *Server) Ended() string {
	select {
	case <-s.done:
		return fmt.Sprintf("%v; its last output: %s", s.exit, tail(s.log))
	default:
		return ""
	}
}

// ports are those of one block, which no other process of the suite uses: it listens on
// the block's first port until it ends.
var ports struct {
	sync.Mutex
	guard      net.Listener
	next, last int
}

const portsInBlock = 50

func freePort() int {
	ports.Lock()
	defer ports.Unlock()
	for first := 20000; ports.guard == nil && first < 30000; first += portsInBlock {
		if l, err := listen(first); err == nil {
			ports.guard, ports.next, ports.last = l, first+1, first+portsInBlock
		}
	}
	for ; ports.next < ports.last; ports.next++ {
		if l, err := listen(ports.next); err == nil {
			l.Close()
			ports.next++
			return ports.next - 1
		}
	}
	panic("suite: no free port")
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
}

// startServer runs the command template with the flags of a configuration.
func startServer(f *Fixtures, config *Config, work string) (*Server, error) {
	s := &Server{Fix: f, config: config, port: freePort(), dir: filepath.Join(work, config.Name), Notes: Obj{}}
	s.URL = "https://127.0.0.1:" + strconv.Itoa(s.port)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *Server) start() error {
	if err := s.spawn(s.config.Flags(s.Fix, s.dir)); err != nil {
		return err
	}
	ready := s.config.Ready
	if ready == "" {
		ready = "/readyz"
	}
	limit := startTimeout()
	var last string
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ended := s.Ended(); ended != "" {
			return fmt.Errorf("the process ended before %s answered 200: %s", ready, ended)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+N(ready), nil)
		req.Header.Set("Authorization", "Bearer "+s.Fix.AdminToken)
		res, err := plainClient.Do(req)
		if err != nil {
			last = err.Error()
		} else {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode == 200 {
				cancel()
				if s.config.Ready == "" {
					s.settle()
				}
				return nil
			}
			last = fmt.Sprintf("status %d: %s", res.StatusCode, short(string(body), 300))
		}
		cancel()
	}
	s.stop()
	return fmt.Errorf("%s did not answer 200 within %v; last: %s; last output: %s", ready, limit, last, tail(s.log))
}

// settle gives the control plane of a ready server a moment to make the
// namespaces that it makes itself; it is no failure if it does not.
func (s *Server) settle() {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		found := true
		for _, ns := range []string{"default", "platform-system", "platform-public"} {
			req, _ := http.NewRequest("GET", s.URL+N("/api/v1/namespaces/"+ns), nil)
			req.Header.Set("Authorization", "Bearer "+s.Fix.AdminToken)
			res, err := plainClient.Do(req)
			if err != nil {
				return
			}
			res.Body.Close()
			found = found && res.StatusCode == 200
		}
		if found {
			return
		}
	}
}

func startTimeout() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("CONFORMANCE_START_TIMEOUT")); err == nil {
		return d
	}
	return 60 * time.Second
}

// spawn starts the process in its own process group; it is signalled when
// the suite dies.
func (s *Server) spawn(flags []string) error {
	quoted := make([]string, len(flags))
	for i, fl := range flags {
		quoted[i] = "'" + strings.ReplaceAll(N(fl), "'", `'\''`) + "'"
	}
	data := filepath.Join(s.dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	command := strings.NewReplacer("{dir}", data, "{port}", strconv.Itoa(s.port), "{flags}", strings.Join(quoted, " ")).
		Replace(os.Getenv("CONFORMANCE_CMD"))
	s.log = filepath.Join(s.dir, "output.log")
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "+ %s\n", command)
	s.cmd = exec.Command("bash", "-c", command)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.cmd.Start(); err != nil {
		out.Close()
		return err
	}
	s.done = make(chan struct{})
	spawnedLock.Lock()
	spawned = append(spawned, s)
	spawnedLock.Unlock()
	go func(cmd *exec.Cmd, done chan struct{}) {
		s.exit = cmd.Wait()
		out.Close()
		close(done)
	}(s.cmd, s.done)
	return nil
}

// spawned are the servers that were ever started, for an interrupted run.
var (
	spawned     []*Server
	spawnedLock sync.Mutex
)

// stopAll ends every server, at once, when the run itself is ended.
func stopAll() {
	spawnedLock.Lock()
	defer spawnedLock.Unlock()
	for _, s := range spawned {
		if s.Ended() == "" {
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
		}
	}
}

// stop ends the process group the suite started.
func (s *Server) stop() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	group := -s.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-s.done
}

// Refuses starts a further server with flags and fails unless it ends by itself
// with an error.
func (t *T) Refuses(flags ...string) {
	s := t.another(flags)
	if err := s.spawn(s.config.Flags(s.Fix, s.dir)); err != nil {
		t.Failf("starting the server: %v", err)
	}
	defer s.stop()
	select {
	case <-s.done:
		if s.exit == nil {
			t.Failf("flags %q: expected the server to refuse to start with an error, it ended with exit status 0", flags)
		}
	case <-time.After(20 * time.Second):
		t.Failf("flags %q: expected the server to refuse to start, it was still running after 20s", flags)
	}
}

// Starts fails unless a further server with flags becomes ready.
func (t *T) Starts(flags ...string) {
	s := t.another(flags)
	defer s.stop()
	if err := s.start(); err != nil {
		t.Failf("flags %q: expected the server to start: %v", flags, err)
	}
}

// Logs fails unless a line of the server's output holds all texts.
func (t *T) Logs(texts ...string) {
	output, err := os.ReadFile(t.Server.log)
	if err != nil {
		t.Failf("reading the output of the server: %v", err)
	}
	for line := range strings.Lines(string(output)) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return
		}
	}
	t.Failf("expected a line with %q in the output of the server", texts)
}

// another returns a further server with its own flags, which is not started yet.
func (t *T) another(flags []string) *Server {
	config := &Config{Name: strings.ToLower(t.check.ID), Flags: func(f *Fixtures, _ string) []string {
		return append([]string{"--token-auth-file=" + f.TokenFile}, flags...)
	}}
	s := &Server{Fix: t.Fix, port: freePort(), dir: filepath.Join(filepath.Dir(t.Server.dir), config.Name), config: config}
	s.URL = "https://127.0.0.1:" + strconv.Itoa(s.port)
	_ = os.MkdirAll(s.dir, 0o755)
	return s
}

func tail(path string) string {
	b, _ := os.ReadFile(path)
	lines := strings.Split(string(bytes.TrimSpace(b)), "\n")
	return short(strings.Join(lines[max(0, len(lines)-4):], " | "), 900)
}

// Fixtures are the files and helper servers shared by all configurations.
type Fixtures struct {
	Dir                   string
	AdminToken, TokenFile string
	CA, ProxyCA, OtherCA  *Authority
	CAFile, ProxyCAFile   string
	SAKeyFile             string
	OIDC                  *oidcIssuer
	OIDCCAFile            string
	Hook                  *TokenHook
	HookFile              string
	WhoAmI                string // base64 of a certificate request

	admission *admissionServer
	saKey     *rsa.PrivateKey
	users     chan Identity
}

// SignedByServiceAccountKey reports whether a token is signed with that key.
func (f *Fixtures) SignedByServiceAccountKey(token string) bool {
	return verifyJWT(&f.saKey.PublicKey, token)
}

func newFixtures(dir string) *Fixtures {
	f := &Fixtures{
		Dir: dir, AdminToken: "admin-" + RandomID(20),
		CA: NewAuthority("conformance-client-ca"), ProxyCA: NewAuthority("conformance-proxy-ca"), OtherCA: NewAuthority("conformance-stranger-ca"),
	}
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			panic(err)
		}
		return path
	}
	f.CAFile = file("client-ca.crt", f.CA.PEM)
	f.ProxyCAFile = file("proxy-ca.crt", f.ProxyCA.PEM)
	f.saKey = newRSA()
	f.SAKeyFile = file("sa.key", keyPEM(f.saKey))
	f.WhoAmI = base64.StdEncoding.EncodeToString(Request{CN: "whoami"}.PEM())

	// static tokens: token, user name, user uid, optional groups
	var csv strings.Builder
	fmt.Fprintf(&csv, "%s,admin,admin-uid,\"system:masters\"\n", f.AdminToken)
	csv.WriteString("alice-token,alice,alice-uid,\"team-a,team-b\"\n")
	csv.WriteString("bob-token,bob,bob-uid,solo\n")
	csv.WriteString("carol-token,carol,carol-uid\n")
	const pool = 120
	f.users = make(chan Identity, pool)
	for i := range pool {
		id := Identity{Token: fmt.Sprintf("user%03d-%s", i, RandomID(8)), Name: fmt.Sprintf("user%03d", i)}
		fmt.Fprintf(&csv, "%s,%s,uid-%03d\n", id.Token, id.Name, i)
		f.users <- id
	}
	f.TokenFile = file("tokens.csv", []byte(csv.String()))

	web := NewAuthority("conformance-web-ca")
	f.OIDC = newIssuer(web)
	f.OIDCCAFile = file("oidc-ca.crt", web.PEM)
	f.admission = newAdmissionServer(web)

	clients := NewAuthority("conformance-hook-client-ca")
	f.Hook = newTokenHook(web, clients)
	cert := clients.Client("apiserver-as-hook-client").client.Transport.(*http.Transport)
	pair := must(cert.TLSClientConfig.GetClientCertificate(nil))
	enc := base64.StdEncoding.EncodeToString
	f.HookFile = file("token-hook.yaml", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: authn
  cluster: {server: "%s", certificate-authority-data: %s}
users:
- name: apiserver
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: webhook
  context: {cluster: authn, user: apiserver}
current-context: webhook
`, f.Hook.URL, enc(web.PEM), enc(pemBlock("CERTIFICATE", pair.Certificate[0])), enc(keyPEM(pair.PrivateKey))))
	return f
}

// User returns a user of the token file that no other check uses.
func (t *T) User() Identity {
	select {
	case id := <-t.Fix.users:
		return id
	default:
		panic("suite: the pool of users is empty; make it larger in newFixtures")
	}
}
