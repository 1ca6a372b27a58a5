// Package machine knows the machine that a process runs on: the addresses of its interfaces, and the
// ports of the suite on it. Addresses that clients write must not lead there.
package machine

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/endpoint"
)

// addressesFor is how long the addresses of the interfaces are kept.
const addressesFor = 10 * time.Second

// Machine is the machine that a process runs on, with the ports that the process knows: its own, and
// those of other services of the suite. It is safe for concurrent use. A nil Machine has no address and no port.
type Machine struct {
	given map[netip.Addr]bool
	// interfaces returns the addresses of the interfaces.
	interfaces func() ([]net.Addr, error)

	mu    sync.Mutex
	ports map[uint16]bool
	found map[netip.Addr]bool // the addresses of the interfaces, read at the time at
	at    time.Time
}

// New returns the machine with the addresses of its interfaces and the given ones, which are
// those by which others reach it.
func New(given ...netip.Addr) *Machine {
	m := &Machine{given: map[netip.Addr]bool{}, ports: map[uint16]bool{}, interfaces: net.InterfaceAddrs}
	for _, address := range given {
		m.given[endpoint.Plain(address)] = true
	}
	return m
}

// Of returns the machine of a process with flags. advertised is an address by which others reach it; it
// may be empty.
func Of(flags *pflag.FlagSet, advertised string) *Machine {
	var given []netip.Addr
	if address, err := netip.ParseAddr(advertised); err == nil {
		given = append(given, address)
	}
	m := New(given...)
	m.KnowFlags(flags)
	return m
}

// KnowPort adds a port that the process listens on.
func (m *Machine) KnowPort(port int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ports[uint16(port)] = true //nolint:gosec // a port
}

// KnowFlags adds the ports that the flags of the process name, except those of the given names: of what
// it listens on, and of the services that it connects to, which may run on this machine.
func (m *Machine) KnowFlags(flags *pflag.FlagSet, except ...string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(except, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			for _, part := range strings.FieldsFunc(value, separates) {
				if port := portOf(f.Name, part); port != 0 {
					m.KnowPort(port)
				}
			}
		}
	})
}

// separates reports whether a rune separates addresses in the value of a flag.
func separates(r rune) bool { return strings.ContainsRune(",;#= \"", r) }

// portOf returns the port in a part of the value of a flag; 0 if it has none.
func portOf(name, value string) int {
	text := ""
	if strings.HasSuffix(name, "-port") {
		text = value
	} else if u, err := url.Parse(value); err == nil && u.Host != "" {
		text = u.Port()
	} else if _, port, err := net.SplitHostPort(value); err == nil {
		text = port
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

// Has reports whether an address is one of the machine. If the interfaces cannot be read, every
// address may be.
func (m *Machine) Has(address netip.Addr) bool {
	if m == nil {
		return false
	}
	address = endpoint.Plain(address)
	if address.IsLoopback() || address.IsUnspecified() || m.given[address] {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) > addressesFor {
		found, err := m.interfaces()
		if err != nil {
			return true
		}
		m.found, m.at = map[netip.Addr]bool{}, time.Now()
		for _, a := range found {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				m.found[endpoint.Plain(prefix.Addr())] = true
			}
		}
	}
	return m.found[address]
}

// Serves reports whether the process knows a port at an address of the machine.
func (m *Machine) Serves(at netip.AddrPort) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	known := m.ports[at.Port()]
	m.mu.Unlock()
	return known && m.Has(at.Addr())
}
