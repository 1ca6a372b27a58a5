package connect

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/machine"
	"github.com/portico-platform/portico/services/kit/run"
)

// Settings are the flags of connections to nodes, pods and services.
type Settings struct {
	// Inflight is the maximum number of concurrent connections.
	Inflight int

	certificate, key, authority string
	timeout                     time.Duration
	addressTypes                []string
	allow, deny                 []string
	idle, lifetime              time.Duration
}

// Register adds the flags.
func (c *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&c.certificate, "kubelet-client-certificate", "", "client certificate for connections to nodes (PEM); read again when it changes")
	fs.StringVar(&c.key, "kubelet-client-key", "", "private key for --kubelet-client-certificate (PEM)")
	fs.StringVar(&c.authority, "kubelet-certificate-authority", "", "authorities of the certificates of nodes (PEM); without it these are not verified")
	fs.DurationVar(&c.timeout, "kubelet-timeout", 5*time.Second, "timeout of connecting to nodes, pods and endpoints, including TLS")
	fs.StringSliceVar(&c.addressTypes, "kubelet-preferred-address-types", []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"},
		"types of addresses of nodes, the preferred one first")
	fs.StringSliceVar(&c.allow, "connect-allow-cidrs", nil, "networks that connections may reach although they are loopback, link-local, multicast or metadata service addresses, or those of the front door's own machine")
	fs.StringSliceVar(&c.deny, "connect-deny-cidrs", nil, "networks that connections must never reach, such as that of etcd and NATS")
	fs.IntVar(&c.Inflight, "max-connections-inflight", 400, "maximum number of concurrent logs, exec, attach, port forwarding and proxy requests")
	fs.DurationVar(&c.idle, "connect-idle-timeout", 4*time.Hour, "how long a connection may be idle; 0 for no limit")
	fs.DurationVar(&c.lifetime, "connect-max-duration", 24*time.Hour, "maximum duration of a connection; 0 for no limit")
}

// New returns the handlers of connections. advertised is an address by which others reach the machine; it may
// be empty. The error is run.ErrUsage if a flag is invalid.
func (c *Settings) New(n *run.Node, advertised string, store services.Reader, admission services.Admission) (*Handlers, error) {
	policy, err := c.policy()
	if err != nil {
		return nil, err
	}
	policy.Machine = machine.Of(n.Flags, advertised)
	transports, err := outbound.New(outbound.Config{Policy: policy, Certificate: c.certificate, Key: c.key, Authority: c.authority,
		Timeout: c.timeout, Idle: c.idle, Log: n.Log})
	if err != nil {
		return nil, run.Usagef("--kubelet-client-certificate, --kubelet-client-key, --kubelet-certificate-authority: %v", err)
	}
	if c.certificate != "" && c.authority == "" {
		n.Log.Warn("certificates of nodes are not verified: --kubelet-certificate-authority is not set")
	}
	return &Handlers{Store: store, Admission: admission, Policy: policy, Transports: transports,
		AddressTypes: c.addressTypes, Lifetime: c.lifetime}, nil
}

func (c *Settings) policy() (p outbound.Policy, err error) {
	if p.Allow, err = endpoint.ParseNetworks(c.allow); err != nil {
		return p, run.Usagef("--connect-allow-cidrs: %v", err)
	}
	if p.Deny, err = endpoint.ParseNetworks(c.deny); err != nil {
		return p, run.Usagef("--connect-deny-cidrs: %v", err)
	}
	if c.Inflight < 1 || c.timeout <= 0 {
		return p, run.Usagef("--max-connections-inflight and --kubelet-timeout must be positive")
	}
	return p, nil
}
