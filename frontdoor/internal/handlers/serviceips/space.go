package serviceips

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/resource"
)

// space is a range of addresses. at(0) to at(size-1) may be assigned. A Service may
// request all that contains accepts.
type space interface {
	fmt.Stringer
	kind() resource.GroupResource
	// what returns the word for an address in messages.
	what() string
	size() int
	at(i int) string
	contains(address string) bool
	// claim returns the storage key of an address in canonical form.
	claim(address string) resource.Key
}

// Network is a range of cluster IPs.
type Network struct{ prefix netip.Prefix }

// Networks are the ranges of the cluster, the default one first.
type Networks []Network

// maxAddresses is the largest number of addresses assigned from one network.
const maxAddresses = 1 << 16

// First returns the first address of the default network, which the API's own Service has.
func (n Networks) First() string { return n[0].prefix.Addr().Next().String() }

// ParseNetworks parses --service-cluster-ip-range: one network, or one per family.
func ParseNetworks(values []string) (Networks, error) {
	if len(values) == 0 || len(values) > 2 {
		return nil, errors.New("must be one network, or one per IP family")
	}
	var n Networks
	for _, value := range values {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(value))
		if err != nil {
			return nil, err
		}
		if prefix.Addr().BitLen()-prefix.Bits() < 2 {
			return nil, fmt.Errorf("%s has too few addresses", prefix)
		}
		n = append(n, Network{prefix.Masked()})
	}
	if len(n) == 2 && n[0].family() == n[1].family() {
		return nil, fmt.Errorf("%s and %s are of the same IP family", n[0], n[1])
	}
	return n, nil
}

// of returns the network of a family.
func (n Networks) of(f string) (Network, bool) {
	for _, network := range n {
		if network.family() == f {
			return network, true
		}
	}
	return Network{}, false
}

func (n Network) String() string               { return n.prefix.String() }
func (n Network) kind() resource.GroupResource { return ipClaims }
func (n Network) what() string                 { return "IP" }
func (n Network) family() string               { return familyOf(n.prefix.Addr()) }

// reserved is the number of leading addresses that are not assigned: the network address,
// and the address of the API's own Service, which may be requested.
const reserved = 2

func (n Network) size() int {
	bits := n.prefix.Addr().BitLen() - n.prefix.Bits()
	all := maxAddresses
	if bits < 16 {
		all = 1 << bits
	}
	return all - reserved - 1 // the last one may be the broadcast address
}

func (n Network) at(i int) string { return offset(n.prefix.Addr(), uint64(i)+reserved).String() }

func (n Network) contains(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil || !n.prefix.Contains(ip) || ip == n.prefix.Addr() {
		return false
	}
	return !ip.Is4() || n.prefix.Contains(ip.Next()) // the last IPv4 address is the broadcast address
}

func (n Network) claim(address string) resource.Key {
	if ip, err := netip.ParseAddr(address); err == nil {
		address = ip.Unmap().String()
	}
	return resource.Key{GroupResource: ipClaims, Name: address}
}

// offset returns the address n after ip.
func offset(ip netip.Addr, n uint64) netip.Addr {
	if ip.Is4() {
		b := ip.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := ip.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	return netip.AddrFrom16(b)
}

// Ports is a range of node ports, both ends included.
type Ports struct{ first, last int }

// ParsePorts parses --service-node-port-range, such as 30000-32767.
func ParsePorts(value string) (Ports, error) {
	from, to, ok := strings.Cut(value, "-")
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if !ok || err != nil || err2 != nil || first < 1 || last < first || last > math.MaxUint16 {
		return Ports{}, fmt.Errorf("%q is not a range of ports such as 30000-32767", value)
	}
	return Ports{first, last}, nil
}

func (p Ports) String() string               { return fmt.Sprintf("%d-%d", p.first, p.last) }
func (p Ports) kind() resource.GroupResource { return portClaims }
func (p Ports) what() string                 { return "port" }
func (p Ports) size() int                    { return p.last - p.first + 1 }
func (p Ports) at(i int) string              { return strconv.Itoa(p.first + i) }

func (p Ports) contains(address string) bool {
	n, err := strconv.Atoi(address)
	return err == nil && n >= p.first && n <= p.last
}

func (p Ports) claim(address string) resource.Key {
	return resource.Key{GroupResource: portClaims, Name: address}
}

var (
	_ space = Network{}
	_ space = Ports{}
)
