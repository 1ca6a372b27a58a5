package pki

// The authorities: one for each kind of connection, because a process that trusts an
// authority accepts all its certificates.
const (
	peers      = "peers"       // services, to each other
	serving    = "serving"     // front doors, to their clients
	users      = "users"       // the administrator and the workers, to authn
	frontProxy = "front-proxy" // authenticating proxies, to authn; front doors, to extensions
	signing    = "signing"     // signs approved requests; csr-signer has its key
	etcd       = "etcd"        // etcd and its clients
	etcdPeers  = "etcd-peers"  // etcd's members, to each other
	nats       = "nats"        // NATS and its clients
	natsRoutes = "nats-routes" // NATS servers, to each other
	nodes      = "nodes"       // front doors, to nodes
)

func authorityNames() []string {
	return []string{peers, serving, users, frontProxy, signing, etcd, etcdPeers, nats, natsRoutes, nodes}
}

// folder describes the files of one process.
type folder struct {
	name         string
	certificates []request
	// trust lists, by file, the authorities whose certificates the file contains.
	trust map[string][]string
	// copies maps files of the folder to the files they are copied from.
	copies map[string]string
	// busRole is the role of its NATS user; empty without one.
	busRole role
	// server is the server of its client configuration; empty without one.
	server string
	// administrator requests a client configuration that needs no other file.
	administrator bool
}

// request describes a certificate and its authority.
type request struct {
	file           string // in the folder, without .crt
	authority      string
	name           string
	groups         []string
	hosts          []string
	server, client bool
}

// part adds the files for one kind of connection to a folder.
type part func(*folder)

// folders returns the folders of all processes.
func (s Site) folders() []folder {
	worker := part(func(f *folder) { f.asUser(s.WorkersServer, "system:portico:"+f.name, nil) })
	all := []folder{
		newFolder("store", peer, etcdClient),
		newFolder("watch-hub", peer, etcdClient, bus(hub)),
		newFolder("authn", peer, authenticator),
		newFolder("authz", peer, bus(reader)),
		newFolder("admission", peer, bus(reader)),
		newFolder("frontdoor", peer, bus(reader), s.frontdoor),
		newFolder("csr-signer", worker, func(f *folder) {
			f.copies["signing-ca.crt"], f.copies["signing-ca.key"] = authorityFile(signing, ".crt"), authorityFile(signing, ".key")
		}),
		newFolder("token-cleaner", worker),
		newFolder("lifecycle", worker, func(f *folder) { f.copies["service-account.key"] = accountsDir + "/service-account.key" }),
		newFolder("front-proxy", func(f *folder) {
			f.add(request{file: "client", authority: frontProxy, name: proxyName, client: true})
			f.trust["serving-ca.crt"] = []string{serving}
		}),
		newFolder("node", func(f *folder) { f.trust["clients-ca.crt"] = []string{nodes} }),
		newFolder("backup", etcdClient),
		newFolder("balancer", func(f *folder) { f.trust["serving-ca.crt"] = []string{serving} }),
		newFolder("admin", etcdClient, func(f *folder) {
			f.administrator = true
			f.asUser(s.Server, "admin", []string{"system:masters"})
		}),
	}
	for _, host := range s.EtcdMembers {
		all = append(all, newFolder(host, etcdMember))
	}
	for _, host := range s.NATSServers {
		all = append(all, newFolder(host, natsServer))
	}
	return all
}

func newFolder(name string, parts ...part) folder {
	f := folder{name: name, trust: map[string][]string{}, copies: map[string]string{}}
	for _, p := range parts {
		p(&f)
	}
	return f
}

func (f *folder) add(r request) { f.certificates = append(f.certificates, r) }

// asUser makes the process a user of the API.
func (f *folder) asUser(server, name string, groups []string) {
	f.server = server
	f.add(request{file: "user", authority: users, name: name, groups: groups, client: true})
	f.trust["serving-ca.crt"] = []string{serving}
}

// peer adds a certificate for connections between services; callers check its name.
func peer(f *folder) {
	f.add(request{file: "peer", authority: peers, name: f.name, hosts: []string{f.name}, server: true, client: true})
	f.trust["peer-ca.crt"] = []string{peers}
}

func etcdClient(f *folder) {
	f.add(request{file: "etcd", authority: etcd, name: f.name, client: true})
	f.trust["etcd-ca.crt"] = []string{etcd}
}

// bus adds a NATS user: a certificate for the TLS connection and a seed for the login.
func bus(r role) part {
	return func(f *folder) {
		f.add(request{file: "nats", authority: nats, name: f.name, client: true})
		f.trust["nats-ca.crt"] = []string{nats}
		f.busRole = r
	}
}

// proxyName is the common name of those that authn and extensions trust to name users.
const proxyName = "front-proxy-client"

// authenticator adds the certificates and public keys that verify users' credentials, but no
// private key.
func authenticator(f *folder) {
	f.trust["users-ca.crt"] = []string{users, signing}
	f.trust["front-proxy-ca.crt"] = []string{frontProxy}
	f.copies["service-account.pub"] = accountsDir + "/service-account.pub"
}

func (s Site) frontdoor(f *folder) {
	f.add(request{file: "serving", authority: serving, name: "frontdoor", hosts: s.servingHosts(), server: true})
	f.copies["service-account.key"] = accountsDir + "/service-account.key"
	authenticator(f) // extensions learn from it whom to trust
	f.add(request{file: "proxy-client", authority: frontProxy, name: proxyName, client: true})
	// Nodes show certificates that csr-signer has signed.
	f.add(request{file: "kubelet", authority: nodes, name: "system:portico:frontdoor", client: true})
	f.trust["kubelet-ca.crt"] = []string{signing}
}

func etcdMember(f *folder) {
	f.add(request{file: "server", authority: etcd, name: f.name, hosts: localNames(f.name), server: true, client: true})
	f.add(request{file: "peer", authority: etcdPeers, name: f.name, hosts: localNames(f.name), server: true, client: true})
	f.trust["etcd-ca.crt"], f.trust["etcd-peers-ca.crt"] = []string{etcd}, []string{etcdPeers}
}

func natsServer(f *folder) {
	f.add(request{file: "server", authority: nats, name: f.name, hosts: localNames(f.name), server: true})
	f.add(request{file: "route", authority: natsRoutes, name: f.name, hosts: localNames(f.name), server: true, client: true})
	f.trust["nats-ca.crt"], f.trust["nats-routes-ca.crt"] = []string{nats}, []string{natsRoutes}
}

// localNames returns the names of a server that clients address by its host name.
func localNames(host string) []string { return unique([]string{host, "localhost", "127.0.0.1", "::1"}) }
