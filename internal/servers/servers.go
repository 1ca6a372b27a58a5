// Package servers starts API servers as processes on this machine, for tools that measure or
// compare them: Portico in the original vocabulary, and the reference server with its own
// etcd. Both accept the same administrator token, and neither runs controllers. Only tools
// use the package; it is not part of a service.
package servers

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// AdminToken is the bearer token of a member of system:masters.
const AdminToken = "tool-admin"

// withoutWorkers starts Portico with one controller, because those of the reference server are
// a separate program, which is not started here. Objects of definitions that are deleted are
// removed by that server itself.
const withoutWorkers = "--controllers=customresourcecleanup"

// Server is a server and the processes it consists of.
type Server struct {
	Name, URL string
	// URLs are those of all front doors of separate processes.
	URLs []string
	// Version is the version of the program, if its build information contains it.
	Version   string
	processes []*exec.Cmd
	status    map[string]string // addresses of processes that serve metrics, by name
	// environment returns what a program has in its environment unless this process has it too; nil if nothing.
	environment func(program string) []string
}

// StartPortico starts the all-in-one with its data and its log in the folder work. The
// caller has to wait until it is ready, and has to stop the result, also after an error.
// flags are further flags of the program.
func StartPortico(program, work string, flags ...string) (*Server, error) {
	address, tokens, err := home(work, "portico")
	if err != nil {
		return nil, err
	}
	s := &Server{Name: "portico", URL: "https://" + address}
	return s, s.spawn(work, program, append(flags, allInOne(address, filepath.Join(work, "portico"), tokens)...)...)
}

// allInOne are the flags of the all-in-one.
func allInOne(address, data, tokens string) []string {
	host, port, _ := net.SplitHostPort(address)
	return []string{"--vocabulary=k8s", "--data-dir=" + data, "--bind-address=" + host, "--secure-port=" + port,
		"--token-auth-file=" + tokens, "--disable-admission-plugins=ServiceAccount", withoutWorkers}
}

// StartPeer starts the reference server and its etcd from the programs apiserver and etcd in
// a folder. The caller has the same obligations; flags are further flags of apiserver.
func StartPeer(programs, work string, flags ...string) (*Server, error) {
	address, tokens, err := home(work, "peer")
	if err != nil {
		return nil, err
	}
	etcd, err := loopback.FreeAddress()
	if err != nil {
		return nil, err
	}
	key, err := accountKey(work)
	if err != nil {
		return nil, err
	}
	apiserver := filepath.Join(programs, "apiserver")
	s := &Server{Name: "peer", URL: "https://" + address, Version: moduleVersion(apiserver, "/kubernetes")}
	if err := s.spawn(work, filepath.Join(programs, "etcd"), "--data-dir="+filepath.Join(work, "peer", "etcd"), "--log-level=warn",
		"--listen-client-urls=http://"+etcd, "--advertise-client-urls=http://"+etcd, "--listen-peer-urls=http://127.0.0.1:0"); err != nil {
		return s, err
	}
	host, port, _ := net.SplitHostPort(address)
	return s, s.spawn(work, apiserver, append(flags, "--etcd-servers=http://"+etcd, "--cert-dir="+filepath.Join(work, "peer"),
		"--bind-address="+host, "--secure-port="+port, "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--allow-privileged", "--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://peer",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key)...)
}

// StartFloor starts a program that serves the content of a file over TLS, with the arguments
// of package floor of the benchmark. The caller has the same obligations.
func StartFloor(program, command, file, work string) (*Server, error) {
	address, _, err := home(work, command)
	if err != nil {
		return nil, err
	}
	authority, err := peertls.NewAuthority()
	if err != nil {
		return nil, err
	}
	files, err := authority.Issue(filepath.Join(work, command), "127.0.0.1")
	if err != nil {
		return nil, err
	}
	s := &Server{Name: command, URL: "https://" + address}
	return s, s.spawn(work, program, command, address, files.Cert, files.Key, file)
}

// Log returns the path of the log of one of the programs.
func Log(work, server, program string) string {
	return filepath.Join(work, server+"-"+filepath.Base(program)+".log")
}

func (s *Server) spawn(work, program string, args ...string) error {
	log, err := os.OpenFile(Log(work, s.Name, program), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	if filepath.Base(program) == "apiserver" {
		command.Args[0] = "kube-apiserver" // its name as a manager of fields
	}
	command.Stdout, command.Stderr = log, log
	if s.environment != nil {
		command.Env = append(s.environment(filepath.Base(program)), os.Environ()...)
	}
	if err := command.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, command)
	return nil
}

// Processes returns the ids of the server's processes.
func (s *Server) Processes() (ids []int) {
	for _, p := range s.processes {
		ids = append(ids, p.Process.Pid)
	}
	return ids
}

// Stop ends the processes, the youngest first, and waits for each.
func (s *Server) Stop() {
	for i := len(s.processes) - 1; i >= 0; i-- {
		_ = s.processes[i].Process.Signal(syscall.SIGTERM)
		_ = s.processes[i].Wait()
	}
}

// moduleVersion returns the version of a module from the build information of a program. A
// program built from the module proxy does not know its own version.
func moduleVersion(program, module string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return ""
	}
	for _, m := range info.Deps {
		if strings.HasSuffix(m.Path, module) {
			return m.Version
		}
	}
	return ""
}

// home creates a server's folder with a token file and finds a free address.
func home(work, name string) (address, tokens string, err error) {
	dir := filepath.Join(work, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	if address, err = loopback.FreeAddress(); err != nil {
		return "", "", err
	}
	tokens = filepath.Join(work, name+"-tokens.csv")
	return address, tokens, os.WriteFile(tokens, []byte(AdminToken+",admin,admin,\"system:masters\"\n"), 0o600)
}

// accountKey writes the key that the reference server requires for service account tokens.
func accountKey(work string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "accounts.key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600)
}
