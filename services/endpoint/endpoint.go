// Package endpoint classifies server addresses, so that nothing is sent to another
// machine without encryption, and bounds how long clients wait for the servers there. It
// resolves no names. It serves "What the service does".
package endpoint

import (
	"net/netip"
	"strings"
)

// Local reports whether a host, as in a URL, is always this machine: localhost or a
// loopback address. Unencrypted data sent there stays here. Other names count as
// remote, whatever they resolve to now.
func Local(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
