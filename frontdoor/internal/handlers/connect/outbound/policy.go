// Package outbound connects to addresses that objects of the API name: those of nodes,
// pods and endpoints. It decides which addresses may be reached, with which certificate,
// and how long a connection may be silent; never who may request it. Such an address is
// data that a client has written, so it is checked when it is dialled, after its name
// has been resolved.
package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/machine"
)

// Policy decides which addresses may be reached.
type Policy struct {
	// Allow are networks that are reached although the rules below refuse them.
	Allow endpoint.Networks
	// Deny are networks that are never reached.
	Deny endpoint.Networks
	// Machine is the one that the front door runs on. The ports of the suite there are never reached,
	// and others only if Allow has the address; nil for none.
	Machine *machine.Machine
}

// kubeletPort is the port of kubelets, of which one may run on the machine of the front door.
const kubeletPort = 10250

// Addresses of metadata services that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}

// Check returns an error unless the address may be reached: loopback, link-local,
// multicast, broadcast and unspecified addresses and those of metadata services may not.
func (p Policy) Check(address netip.Addr) error {
	address = endpoint.Plain(address)
	if network, denied := p.Deny.Containing(address); denied {
		return fmt.Errorf("address not allowed: %s is in %s of --connect-deny-cidrs", address, network)
	}
	if _, allowed := p.Allow.Containing(address); allowed {
		return nil
	}
	if !address.IsGlobalUnicast() || !notThisNetwork(address) {
		return fmt.Errorf("address not allowed without --connect-allow-cidrs: %s", address)
	}
	for _, service := range metadata {
		if address == service {
			return fmt.Errorf("address not allowed without --connect-allow-cidrs: %s", address)
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

// check is the check of an address and its port.
func (p Policy) check(at netip.AddrPort) error {
	if err := p.checkSuite(at); err != nil {
		return err
	}
	address := at.Addr()
	if _, allowed := p.Allow.Containing(address); !allowed && at.Port() != kubeletPort && p.Machine.Has(address) {
		return fmt.Errorf("address not allowed without --connect-allow-cidrs: %s is the front door's own machine", address)
	}
	return p.Check(address)
}

// checkSuite refuses the ports of the suite on this machine: a connection there would be one of the
// front door, with its certificates.
func (p Policy) checkSuite(at netip.AddrPort) error {
	if p.Machine.Serves(at) {
		return fmt.Errorf("address not allowed: %s is a port of the suite", at)
	}
	return nil
}

// checkExtension is check for extensions, which may run on the machine of the front door: who registers
// them may receive any request.
func (p Policy) checkExtension(at netip.AddrPort) error {
	if err := p.checkSuite(at); err != nil {
		return err
	}
	return p.Check(at.Addr())
}

// control makes a check that of a net.Dialer, which sees the address that is really dialled.
func control(check func(netip.AddrPort) error) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return check(at)
	}
}
