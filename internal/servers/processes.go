package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// Runtime is the setting of the Go runtime in the images of services, etcd and NATS, for processes that
// wake each other all the time (docs/operations/images.md).
const Runtime = "GODEBUG=schedtrace=2147483647"

// OneProcessor are the programs whose images let the Go runtime use one processor, in the order in which
// deploy/images/build names them.
var OneProcessor = []string{"authn", "authz", "admission", "store", "watch-hub", "etcd", "nats"}

// environment returns that of the image of a program.
func environment(program string) []string {
	if slices.Contains(OneProcessor, program) {
		return []string{Runtime, "GOMAXPROCS=1"}
	}
	return []string{Runtime}
}

// part is a service that runs as a separate process.
type part struct {
	name       string
	replica    int      // 0 for the first
	peers      []string // that it calls
	etcd, nats bool
	args       []string
}

// parts are the services without the workers, each with those that it calls.
func parts(tokens string, serving peertls.Files) []part {
	return []part{
		{name: "store", etcd: true},
		{name: "watch-hub", etcd: true, nats: true},
		{name: "authn", peers: []string{"store"}, args: []string{"--token-auth-file=" + tokens, "--service-account-key-file=" + serving.Key}},
		{name: "authz", peers: []string{"store", "watch-hub"}, nats: true},
		{name: "admission", peers: []string{"store", "watch-hub", "authz"}, nats: true, args: []string{"--disable-admission-plugins=ServiceAccount"}},
		{name: "frontdoor", peers: []string{"store", "watch-hub", "authn", "authz", "admission"}, nats: true,
			args: []string{"--tls-cert-file=" + serving.Cert, "--tls-private-key-file=" + serving.Key}},
	}
}

// StartWithEtcd starts the all-in-one program with etcd as a process, from the programs in a folder,
// connected by mutual TLS. The caller has the same duties as for StartPortico.
func StartWithEtcd(program, programs, work string) (*Server, error) {
	p, tokens, err := begin("etcd-apart", programs, work)
	if err != nil {
		return nil, err
	}
	if p.addresses["etcd"], err = loopback.FreeAddress(); err != nil {
		return nil, err
	}
	if err := p.startServer("etcd", "-dir", filepath.Join(p.home, "etcd")); err != nil {
		return p.Server, err
	}
	files, err := p.issue("portico", "portico")
	if err != nil {
		return p.Server, err
	}
	return p.Server, p.spawn(work, program, append(p.etcdFlags(files), allInOne(p.addresses["frontdoor"], p.home, tokens)...)...)
}

// processes is a server of several processes while it is started.
type processes struct {
	*Server
	programs, work string
	home           string // the folder of its files
	authority      *peertls.Authority
	addresses      map[string]string
}

// begin returns a server without processes, and its file of tokens.
func begin(name, programs, work string) (p *processes, tokens string, err error) {
	address, tokens, err := home(work, name)
	if err != nil {
		return nil, "", err
	}
	p = &processes{Server: &Server{Name: name, URL: "https://" + address, status: map[string]string{}, environment: environment},
		programs: programs, work: work, home: filepath.Join(work, name), addresses: map[string]string{"frontdoor": address}}
	p.authority, err = peertls.NewAuthority()
	return p, tokens, err
}

// StartProcesses starts each service of Portico as a separate process, with etcd and NATS, all connected by
// mutual TLS, from the programs in a folder. There are several front doors, whose addresses are URLs, and one
// of everything else. permissions is the NATS configuration with the users. The caller has the same duties as
// for StartPortico.
func StartProcesses(programs, permissions, work string, frontDoors int) (*Server, error) {
	p, tokens, err := begin("processes", programs, work)
	if err != nil {
		return nil, err
	}
	serving, err := p.issue("serving", "frontdoor", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	all := parts(tokens, serving)
	for _, name := range []string{"etcd", "nats", "store", "watch-hub", "authn", "authz", "admission"} {
		if p.addresses[name], err = loopback.FreeAddress(); err != nil {
			return nil, err
		}
	}
	if err := p.startServer("etcd", "-dir", filepath.Join(p.home, "etcd")); err != nil {
		return p.Server, err
	}
	if err := p.startServer("nats", "-permissions", permissions); err != nil {
		return p.Server, err
	}
	for _, service := range all {
		if err := p.start(service); err != nil {
			return p.Server, err
		}
	}
	p.URLs = []string{p.URL}
	for door := all[len(all)-1]; door.replica < frontDoors-1; {
		door.replica++
		if p.addresses[door.name], err = loopback.FreeAddress(); err != nil {
			return p.Server, err
		}
		p.URLs = append(p.URLs, "https://"+p.addresses[door.name])
		if err := p.start(door); err != nil {
			return p.Server, err
		}
	}
	return p.Server, nil
}

// issue creates a certificate in a separate folder.
func (p *processes) issue(folder string, names ...string) (peertls.Files, error) {
	dir := filepath.Join(p.home, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return peertls.Files{}, err
	}
	return p.authority.Issue(dir, names...)
}

// startServer starts etcd or NATS.
func (p *processes) startServer(name string, args ...string) error {
	files, err := p.issue(name, name, "127.0.0.1")
	if err != nil {
		return err
	}
	return p.spawn(p.work, filepath.Join(p.programs, name), append(args, "-address", p.addresses[name], "-ca", files.CA, "-cert", files.Cert, "-key", files.Key)...)
}

// start starts a service with the addresses of the others.
func (p *processes) start(s part) error {
	files, err := p.issue(fmt.Sprint(s.name, "-", s.replica), s.name)
	if err != nil {
		return err
	}
	status, err := loopback.FreeAddress()
	if err != nil {
		return err
	}
	if s.replica == 0 {
		p.status[s.name] = status
	}
	args := append(append([]string{"--vocabulary=k8s", "--status-address=" + status}, s.args...), files.Flags()...)
	if s.name == "frontdoor" {
		host, port, _ := net.SplitHostPort(p.addresses[s.name])
		args = append(args, "--bind-address="+host, "--secure-port="+port)
	} else {
		args = append(args, "--rpc-address="+p.addresses[s.name])
	}
	for _, peer := range s.peers {
		args = append(args, "--"+peer+"-address="+p.addresses[peer])
	}
	if s.etcd {
		args = append(args, p.etcdFlags(files)...)
	}
	if s.nats {
		args = append(args, "--nats-url=tls://"+p.addresses["nats"], "--nats-ca-file="+files.CA, "--nats-cert-file="+files.Cert, "--nats-key-file="+files.Key)
	}
	return p.spawn(p.work, filepath.Join(p.programs, s.name), args...)
}

// etcdFlags are the flags that connect a program to etcd.
func (p *processes) etcdFlags(files peertls.Files) []string {
	return []string{"--etcd-servers=https://" + p.addresses["etcd"], "--etcd-cafile=" + files.CA, "--etcd-certfile=" + files.Cert, "--etcd-keyfile=" + files.Key}
}

// StatusAddress returns where a process of a name serves its metrics; empty if it does not.
func (s *Server) StatusAddress(name string) string { return s.status[name] }

// Names returns the names of the server's processes, in the order of Processes.
func (s *Server) Names() (names []string) {
	for _, p := range s.processes {
		names = append(names, strings.TrimSuffix(filepath.Base(p.Path), ".exe"))
	}
	return names
}
