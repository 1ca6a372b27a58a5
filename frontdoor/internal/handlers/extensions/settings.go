package extensions

import (
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// Settings are the flags of extensions.
type Settings struct {
	certificate, key string
	seats            int
}

// Register adds the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.certificate, "proxy-client-cert-file", "", "client certificate of the front door for extensions of the API (PEM); read again when it changes")
	fs.StringVar(&s.key, "proxy-client-key-file", "", "private key for --proxy-client-cert-file (PEM)")
	fs.IntVar(&s.seats, "max-extension-requests-inflight", 100, "maximum number of concurrent requests to one extension of the API; further ones are queued fairly by user")
	expiry.Flags(fs, expiry.Own, "proxy-client-cert-file")
}

// Apply adds what the flags say to a configuration. The error is run.ErrUsage if a flag is
// invalid.
func (s *Settings) Apply(n *run.Node, c *Config) (err error) {
	if s.seats < 1 {
		return run.Usagef("--max-extension-requests-inflight must be positive")
	}
	c.Seats = s.seats
	switch {
	case (s.certificate == "") != (s.key == ""):
		return run.Usagef("--proxy-client-cert-file and --proxy-client-key-file must be used together")
	case s.certificate == "":
		if file, _ := n.Flags.GetString("requestheader-client-ca-file"); file != "" {
			n.Log.Warn("extensions of the API do not know who sends a request: they need a client certificate", "flag", "proxy-client-cert-file")
		}
		return nil
	}
	if c.Identity, err = keypair.Open(keypair.Files{What: "client certificate for extensions", Cert: s.certificate, Key: s.key}, n.Log); err != nil {
		return run.Usagef("--proxy-client-cert-file, --proxy-client-key-file: %v", err)
	}
	return nil
}
