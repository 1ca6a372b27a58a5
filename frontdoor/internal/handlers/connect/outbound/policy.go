// Package outbound connects to addresses that objects of the API name: those of nodes,
// pods and endpoints. It decides which addresses may be reached, with which certificate,
// and how long a connection may be silent; never who may request it. Such an address is
// data that a client has written, so it is checked when it is dialled, after its name
// has been resolved.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/portico-platform/portico/services/endpoint"
)

// Policy decides which addresses may be reached.
type Policy struct {
	// Allow are networks that are reached although the rules below refuse them.
	Allow endpoint.Networks
	// Deny are networks that are never reached.
	Deny endpoint.Networks
}

// Addresses of metadata services that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

// Check returns an error unless the address may be reached: loopback, link-local,
// multicast, broadcast and unspecified addresses and those of metadata services may not.
func (p Policy) Check(address netip.Addr) error {
	address = endpoint.Plain(address)
	if network, denied := p.Deny.Containing(address); denied {
		return fmt.Errorf("address not allowed: %s is in %s", address, network)
	}
	if _, allowed := p.Allow.Containing(address); allowed {
		return nil
	}
	if !address.IsGlobalUnicast() || !notThisNetwork(address) {
		return fmt.Errorf("address not allowed: %s", address)
	}
	for _, service := range metadata {
		if address == service {
			return fmt.Errorf("address not allowed: %s", address)
		}
	}
	return nil
}

// notThisNetwork is false for 0.0.0.0/8, which some systems take for themselves.
func notThisNetwork(address netip.Addr) bool { return !address.Is4() || address.As4()[0] != 0 }

// CheckText is Check for an address as text, which must not be a name.
func (p Policy) CheckText(address string) error {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("address not allowed: %q is not an IP address", address)
	}
	return p.Check(parsed)
}

// control is the check of a net.Dialer, which sees the address that is really dialled.
func (p Policy) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return p.CheckText(host)
}
