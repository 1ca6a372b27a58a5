package endpoint

import (
	"fmt"
	"net/netip"
)

// Networks are IP networks.
type Networks []netip.Prefix

// ParseNetworks reads networks in CIDR notation.
func ParseNetworks(texts []string) (networks Networks, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// Containing returns the first network that an address is in, false if it is in none. An IPv6
// address that stands for an IPv4 address is that.
func (n Networks) Containing(address netip.Addr) (network netip.Prefix, ok bool) {
	address = Plain(address)
	for _, network := range n {
		if network.Contains(address) {
			return network, true
		}
	}
	return netip.Prefix{}, false
}

// embedded are networks whose addresses hold an IPv4 address in their last four bytes.
var embedded = Networks{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// Plain returns the IPv4 address that an IPv6 address stands for, if it does.
func Plain(address netip.Addr) netip.Addr {
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
