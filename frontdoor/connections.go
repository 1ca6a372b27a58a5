package frontdoor

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/services/kit/run"
)

// connectConfig holds the flags of connections to nodes, pods and services.
type connectConfig struct {
	certificate, key, authority string
	timeout                     time.Duration
	addressTypes                []string
	allow, deny                 []string
	inflight                    int
	idle, lifetime              time.Duration
}

func (c *connectConfig) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.certificate, "kubelet-client-certificate", "", "client certificate for connections to nodes (PEM); read again when it changes")
	fs.StringVar(&c.key, "kubelet-client-key", "", "private key for --kubelet-client-certificate (PEM)")
	fs.StringVar(&c.authority, "kubelet-certificate-authority", "", "authorities that have signed the certificates of nodes (PEM); without it these are not verified")
	fs.DurationVar(&c.timeout, "kubelet-timeout", 5*time.Second, "timeout of connecting to nodes, pods and endpoints, including TLS")
	fs.StringSliceVar(&c.addressTypes, "kubelet-preferred-address-types", []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"},
		"types of addresses of nodes, the preferred one first")
	fs.StringSliceVar(&c.allow, "connect-allow-cidrs", nil, "networks that connections may reach although they are loopback, link-local, multicast or of a metadata service")
	fs.StringSliceVar(&c.deny, "connect-deny-cidrs", nil, "networks that connections must never reach, such as that of etcd and NATS")
	fs.IntVar(&c.inflight, "max-connections-inflight", 400, "maximum number of concurrent logs, exec, attach, port forwarding and proxy requests")
	fs.DurationVar(&c.idle, "connect-idle-timeout", 4*time.Hour, "how long a connection may transport nothing; 0 for no limit")
	fs.DurationVar(&c.lifetime, "connect-max-duration", 24*time.Hour, "maximum duration of a connection; 0 for no limit")
}

// newConnections builds the handlers of connections.
func (c *connectConfig) newConnections(n *run.Node, b backends) (*connect.Handlers, error) {
	policy, err := c.policy()
	if err != nil {
		return nil, err
	}
	transports, err := outbound.New(outbound.Config{Policy: policy, Certificate: c.certificate, Key: c.key, Authority: c.authority,
		Timeout: c.timeout, Idle: c.idle, Log: n.Log})
	if err != nil {
		return nil, run.Usagef("--kubelet-client-certificate, --kubelet-client-key, --kubelet-certificate-authority: %v", err)
	}
	if c.certificate != "" && c.authority == "" {
		n.Log.Warn("certificates of nodes are not verified: --kubelet-certificate-authority is not set")
	}
	return &connect.Handlers{Store: b.store, Admission: b.admission, Policy: policy, Transports: transports,
		AddressTypes: c.addressTypes, Lifetime: c.lifetime}, nil
}

func (c *connectConfig) policy() (p outbound.Policy, err error) {
	if p.Allow, err = outbound.ParseNetworks(c.allow); err != nil {
		return p, run.Usagef("--connect-allow-cidrs: %v", err)
	}
	if p.Deny, err = outbound.ParseNetworks(c.deny); err != nil {
		return p, run.Usagef("--connect-deny-cidrs: %v", err)
	}
	if c.inflight < 1 || c.timeout <= 0 {
		return p, run.Usagef("--max-connections-inflight and --kubelet-timeout must be positive")
	}
	return p, nil
}
