// Package outbound connects to addresses that objects of the API name: those of nodes,
// pods and endpoints. It decides which addresses may be reached, with which certificate,
// and how long a connection may be silent; never who may ask for it. Such an address is
// data that a client has written, so it is checked when it is dialled, after its name
// has been resolved.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Policy decides which addresses may be reached.
type Policy struct {
	// Allow are networks that are reached although the rules below refuse them.
	Allow []netip.Prefix
	// Deny are networks that are never reached.
	Deny []netip.Prefix
}

// ParseNetworks reads networks in CIDR notation.
func ParseNetworks(texts []string) (networks []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// Addresses of metadata services that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

// embedded are networks whose addresses hold an IPv4 address in their last four bytes.
var embedded = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// Check returns an error unless the address may be reached: loopback, link-local,
// multicast, broadcast and unspecified addresses and those of metadata services may not.
func (p Policy) Check(address netip.Addr) error {
	address = plain(address)
	for _, network := range p.Deny {
		if network.Contains(address) {
			return fmt.Errorf("address not allowed: %s is in %s", address, network)
		}
	}
	for _, network := range p.Allow {
		if network.Contains(address) {
			return nil
		}
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

// plain returns the IPv4 address that an IPv6 address stands for, if it does.
func plain(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() && !address.IsLoopback() && !address.IsUnspecified() {
		for _, network := range embedded {
			if network.Contains(address) {
				bytes := address.As16()
				return netip.AddrFrom4([4]byte(bytes[12:]))
			}
		}
	}
	return address
}

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
