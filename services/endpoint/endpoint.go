// Package endpoint says where the address of a server leads, so that nothing is sent in
// clear to another machine. It resolves no names. It serves "What the service does".
package endpoint

import (
	"net/netip"
	"strings"
)

// Local reports whether a host, as in a URL, is this machine and stays so:
// localhost or a loopback address. What is sent there in clear is seen by nobody
// else. Other names count as elsewhere, whatever they resolve to now.
func Local(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
