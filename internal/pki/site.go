package pki

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/smallstep/certificates/cas/apiv1"
)

// minValidity is the shortest validity of a certificate.
const minValidity = time.Hour

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9_.]{0,251}[a-zA-Z0-9])?$`)

// Check validates a site. Errors contain the name of the flag.
func (s Site) Check() error {
	for _, server := range []struct{ flag, url string }{{"--server", s.Server}, {"--workers-server", s.WorkersServer}} {
		u, err := url.Parse(server.url)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
			return fmt.Errorf("%s: %q is not of the form https://host:port", server.flag, server.url)
		}
	}
	for flag, hosts := range map[string][]string{"--frontdoor-hosts": s.FrontdoorHosts, "--etcd-members": s.EtcdMembers, "--nats-servers": s.NATSServers} {
		for _, host := range hosts {
			if net.ParseIP(host) == nil && !hostName.MatchString(host) {
				return fmt.Errorf("%s: %q is neither a host name nor an address", flag, host)
			}
		}
	}
	seen := map[string]bool{authoritiesDir: true, accountsDir: true, siteFile: true}
	for _, f := range s.folders() {
		if seen[f.name] {
			return fmt.Errorf("--etcd-members, --nats-servers: %q is the name of two folders", f.name)
		}
		seen[f.name] = true
	}
	if s.Validity.Duration < minValidity {
		return fmt.Errorf("--validity: %v is less than %v", s.Validity.Duration, minValidity)
	}
	if s.AuthorityValidity.Duration < s.Validity.Duration {
		return fmt.Errorf("--authority-validity: %v is less than --validity", s.AuthorityValidity.Duration)
	}
	return checkCAS(s.CAS)
}

func checkCAS(configured map[string]apiv1.Options) error {
	for name, options := range configured {
		switch {
		case name == signing:
			return fmt.Errorf("--cas: the authority %q is csr-signer's own, which needs its key", signing)
		case !slices.Contains(authorityNames(), name):
			return fmt.Errorf("--cas: no authority is called %q; there are %q", name, authorityNames())
		case options.Type == "" || options.Is(apiv1.SoftCAS):
			return fmt.Errorf("--cas: the authority %q has no type of a remote authority: omit it to create an authority with a key in this folder", name)
		}
		if err := options.Validate(); err != nil {
			return fmt.Errorf("--cas: the authority %q: %w", name, err)
		}
	}
	return nil
}

// servingHosts returns the names of the front door: its service name, this machine, the
// hosts of the server URLs, and the configured names.
func (s Site) servingHosts() []string {
	hosts := []string{"frontdoor", "localhost", "127.0.0.1", "::1"}
	for _, server := range []string{s.Server, s.WorkersServer} {
		if u, err := url.Parse(server); err == nil {
			hosts = append(hosts, u.Hostname())
		}
	}
	return unique(append(hosts, s.FrontdoorHosts...))
}

func unique(list []string) (once []string) {
	for _, s := range list {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}
