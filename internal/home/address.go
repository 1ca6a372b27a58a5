package home

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

// address is the address of the front door according to its flags.
type address struct {
	bind net.IP // nil or unspecified: every interface
	port int
}

// addressOf reads the flags. It replaces port 0 by a free port, because clients on this
// machine need the port before the front door listens.
func addressOf(flags *pflag.FlagSet) (address, error) {
	a := address{port: 6443}
	if f := flags.Lookup("bind-address"); f != nil {
		if a.bind = net.ParseIP(f.Value.String()); a.bind == nil {
			return a, run.Usagef("--bind-address: %q is not an IP address", f.Value)
		}
	}
	if f := flags.Lookup("secure-port"); f != nil {
		port, err := strconv.ParseUint(f.Value.String(), 10, 16)
		if err != nil {
			return a, run.Usagef("--secure-port: %s is not a port", f.Value)
		}
		a.port = int(port)
	}
	if a.port != 0 {
		return a, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(a.host(), "0"))
	if err != nil {
		return a, err
	}
	a.port = l.Addr().(*net.TCPAddr).Port
	return a, errors.Join(l.Close(), flags.Set("secure-port", strconv.Itoa(a.port)))
}

// hosts returns the names and addresses that the serving certificate has to contain.
func (a address) hosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		hosts = append(hosts, name)
	}
	if a.bind != nil && !a.bind.IsUnspecified() && !a.bind.IsLoopback() {
		hosts = append(hosts, a.bind.String())
	}
	return hosts
}

// host returns the address at which clients on this machine reach the front door.
func (a address) host() string {
	if a.bind != nil && !a.bind.IsUnspecified() {
		return a.bind.String()
	}
	return "127.0.0.1"
}

// url returns the URL of the front door for clients on this machine.
func (a address) url() string {
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(a.host(), strconv.Itoa(a.port))}).String()
}
