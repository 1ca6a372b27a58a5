package audit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// maxSources bounds the logged addresses.
const maxSources = 16

// sources finds out where requests come from. Nothing is decided by it.
type sources struct {
	// proxies are the networks whose headers are accepted; nil if all headers are logged, as in
	// Kubernetes.
	proxies []netip.Prefix
}

// of returns the addresses in the request's headers and then the address of the connection. Clients
// control the headers, so the number of addresses is limited.
func (s sources) of(r *http.Request) []string {
	var texts []string
	if s.proxies != nil {
		texts = s.accepted(r)
	} else {
		for _, ip := range utilnet.SourceIPs(r) {
			texts = append(texts, ip.String())
		}
	}
	if len(texts) > maxSources {
		texts = append(texts[:maxSources-1], texts[len(texts)-1])
	}
	return texts
}

// accepted returns the address of the connection and, if it is a proxy's, those before it, up to the
// first one that is not a proxy's: what comes before that, a client may have written.
func (s sources) accepted(r *http.Request) []string {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil
	}
	at := remote.Addr().Unmap()
	texts := []string{at.String()}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0 && s.proxy(at) && len(texts) < maxSources; i-- {
		if at, err = netip.ParseAddr(strings.TrimSpace(forwarded[i])); err != nil {
			break
		}
		at = at.Unmap()
		texts = append(texts, at.String())
	}
	slices.Reverse(texts)
	return texts
}

func (s sources) proxy(at netip.Addr) bool {
	return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(at) })
}
