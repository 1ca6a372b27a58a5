package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
)

// role is the role of a NATS user, as in deploy/nats/permissions.conf.
type role string

const (
	hub    role = "hub"
	reader role = "reader"
)

// seedFile contains the seed of a process's NATS user.
const seedFile = "nats.seed"

func (p *PKI) makeSeed(folder string) error {
	user, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer user.Wipe()
	seed, err := user.Seed()
	if err != nil {
		return err
	}
	return p.write(folder+"/"+seedFile, append(seed, '\n'))
}

// publicKey returns the public key of a NATS user.
func (p *PKI) publicKey(folder string) (string, error) {
	content, err := os.ReadFile(p.path(folder + "/" + seedFile))
	if err != nil {
		return "", err
	}
	user, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(content))))
	if err != nil {
		return "", fmt.Errorf("%s/%s: %w", folder, seedFile, err)
	}
	defer user.Wipe()
	return user.PublicKey()
}

// serverConfig is the configuration of one NATS server: users identified by nkeys in a separate
// account, and mutual TLS with clients and the other servers, if there are any.
const serverConfig = `# Written by portico pki. Start the server in this folder, because file names are relative
# to its working directory. It reloads all files at SIGHUP, but a server without others does
# not become one with others, or the reverse: it refuses the whole reload, and has to be restarted.
server_name: %q
listen: "0.0.0.0:4222"
max_payload: 8MB

tls {
  ca_file: "nats-ca.crt"
  cert_file: "server.crt"
  key_file: "server.key"
  verify: true
  timeout: 5
}

%shub: { publish: { allow: ["changes.>", "hubs.heartbeat"] }, subscribe: { allow: "hubs.heartbeat" } }
reader: { publish: { deny: ">" }, subscribe: { allow: "changes.>" } }

accounts {
  PORTICO: {
    users: [
%s    ]
  }
}
`

// clusterConfig is the part that servers of a cluster have.
const clusterConfig = `cluster {
  name: "portico"
  listen: "0.0.0.0:6222"
  # Clients know all servers from --nats-url. The addresses that servers would advertise
  # are not in the certificates.
  no_advertise: true
  tls {
    ca_file: "nats-routes-ca.crt"
    cert_file: "route.crt"
    key_file: "route.key"
    verify: true
    timeout: 5
  }
  routes: [%s]
}

`

// writeServerConfigs writes the configuration of every NATS server with the public keys of
// all users.
func (p *PKI) writeServerConfigs() error {
	var users strings.Builder
	for _, f := range p.site.folders() {
		if f.busRole == "" {
			continue
		}
		key, err := p.publicKey(f.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&users, "      { nkey: %q, permissions: $%s } # %s\n", key, f.busRole, f.name)
	}
	for _, host := range p.site.NATSServers {
		var routes []string
		for _, other := range p.site.NATSServers {
			if other != host {
				routes = append(routes, fmt.Sprintf("%q", "tls://"+net.JoinHostPort(other, "6222")))
			}
		}
		cluster := ""
		if len(routes) > 0 {
			cluster = fmt.Sprintf(clusterConfig, strings.Join(routes, ", "))
		}
		content := fmt.Sprintf(serverConfig, host, cluster, users.String())
		if err := p.write(host+"/server.conf", []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// lackingServerConfigs returns the configurations of NATS servers that lack a user, such as after
// the user's seed was replaced and they were not.
func (p *PKI) lackingServerConfigs() (lacking []string, err error) {
	var keys []string
	for _, f := range p.site.folders() {
		if f.busRole == "" {
			continue
		}
		key, err := p.publicKey(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process runs on another machine
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	for _, host := range p.site.NATSServers {
		if missing, err := p.missing(host); missing || err != nil {
			continue
		}
		content, err := p.read(host + "/server.conf")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(key string) bool { return !strings.Contains(string(content), key) }) {
			lacking = append(lacking, host+"/server.conf")
		}
	}
	return lacking, nil
}
