package listener

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/reload"
)

// named is a certificate for clients that name one of its hosts.
type named struct {
	file        string
	hosts       []string // if empty, those that the certificate names
	certificate *reload.Files[*tls.Certificate]
}

// parseNamed opens the files of one --tls-sni-cert-key.
func parseNamed(text string, log *slog.Logger) (named, error) {
	files, hosts, hasHosts := strings.Cut(text, ":")
	cert, key, ok := strings.Cut(files, ",")
	cert, key = strings.TrimSpace(cert), strings.TrimSpace(key)
	if !ok || cert == "" || key == "" || strings.Contains(key, ",") {
		return named{}, fmt.Errorf("%q is not of the form cert,key or cert,key:host,*.host", text)
	}
	n := named{file: cert}
	if hasHosts {
		for host := range strings.SplitSeq(hosts, ",") {
			host = strings.ToLower(strings.TrimSpace(host))
			if err := checkHost(host); err != nil {
				return named{}, err
			}
			n.hosts = append(n.hosts, host)
		}
	}
	var err error
	n.certificate, err = keypair.Open(keypair.Files{What: "serving certificate of --tls-sni-cert-key", Cert: cert, Key: key}, log)
	return n, err
}

// checkHost returns an error unless host is an IP address or a DNS name, whose first label
// may be a wildcard.
func checkHost(host string) error {
	if net.ParseIP(host) != nil {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) > 0 {
		return fmt.Errorf("%q is neither a DNS name nor an IP address", host)
	}
	return nil
}

// certified returns the hosts that the certificate names. IP addresses are left out, as in
// Kubernetes: a client of an address gets the certificate of --tls-cert-file unless a flag
// names the address.
func (n named) certified() []string {
	leaf := n.certificate.Get().Leaf
	hosts := slices.Clone(leaf.DNSNames)
	if cn := leaf.Subject.CommonName; cn != "" && net.ParseIP(cn) == nil && checkHost(strings.ToLower(cn)) == nil {
		hosts = append(hosts, cn)
	}
	for i, host := range hosts {
		hosts[i] = strings.ToLower(host)
	}
	return hosts
}

// choose returns the certificate for the host that a client names, nil if there is none. A
// client that names no host gets that of the address it has connected to. Exact hosts
// come before wildcards, those of flags before those of certificates, earlier flags before
// later ones.
func choose(all []named, hello *tls.ClientHelloInfo) *tls.Certificate {
	if len(all) == 0 {
		return nil
	}
	host, err := hostOf(hello)
	if err != nil {
		return nil
	}
	candidates := []string{host}
	if _, parent, ok := strings.Cut(host, "."); ok && net.ParseIP(host) == nil {
		candidates = append(candidates, "*."+parent)
	}
	for _, candidate := range candidates {
		for _, n := range all {
			if slices.Contains(n.hosts, candidate) {
				return n.certificate.Get()
			}
		}
		for _, n := range all {
			if len(n.hosts) == 0 && slices.Contains(n.certified(), candidate) {
				return n.certificate.Get()
			}
		}
	}
	return nil
}

// hostOf returns the host that a client names.
func hostOf(hello *tls.ClientHelloInfo) (string, error) {
	if hello.ServerName != "" {
		return strings.TrimRight(strings.ToLower(hello.ServerName), "."), nil
	}
	local, ok := hello.Conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return "", errors.New("not a TCP connection")
	}
	return local.IP.String(), nil
}

// leaves returns the certificates that are shown to clients, except those for hosts of flags.
func leaves(serving *tls.Certificate, all []named) []*x509.Certificate {
	found := []*x509.Certificate{serving.Leaf}
	for _, n := range all {
		if len(n.hosts) == 0 {
			found = append(found, n.certificate.Get().Leaf)
		}
	}
	return found
}

// Names reports whether a serving certificate, or a flag, names the host, which is in lower case.
// The port must be open.
func (s *Settings) Names(host string) bool {
	_, parent, _ := strings.Cut(host, ".")
	if slices.Contains(s.hosts, host) || slices.Contains(s.hosts, "*."+parent) {
		return true
	}
	return slices.ContainsFunc(s.certificates(), func(leaf *x509.Certificate) bool { return leaf.VerifyHostname(host) == nil })
}
