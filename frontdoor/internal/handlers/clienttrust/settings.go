package clienttrust

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

// Register declares the flags about clients and proxies. Authn declares them too, to
// authenticate these.
func Register(fs *pflag.FlagSet) {
	fs.StringArray("client-ca-file", nil, "PEM file of the authorities of users' client certificates; may be given more than once")
	fs.String("requestheader-client-ca-file", "", "PEM file of the authorities of trusted proxies' client certificates")
	fs.StringSlice("requestheader-allowed-names", nil, "common names of trusted proxies; if empty, any")
	fs.StringSlice("requestheader-username-headers", nil, "headers with the user name from a proxy, in order")
	fs.StringSlice("requestheader-group-headers", nil, "headers with groups from a proxy")
	fs.StringSlice("requestheader-extra-headers-prefix", nil, "prefixes of headers with extra attributes from a proxy")
}

// Apply adds what the flags say to a configuration.
func Apply(n *run.Node, c *Config) {
	c.ClientAuthorities, _ = n.Flags.GetStringArray("client-ca-file")
	if file, _ := n.Flags.GetString("requestheader-client-ca-file"); file != "" {
		c.ProxyAuthorities = []string{file}
	}
	c.AllowedNames, _ = n.Flags.GetStringSlice("requestheader-allowed-names")
	c.UserHeaders, _ = n.Flags.GetStringSlice("requestheader-username-headers")
	c.GroupHeaders, _ = n.Flags.GetStringSlice("requestheader-group-headers")
	c.ExtraPrefixes, _ = n.Flags.GetStringSlice("requestheader-extra-headers-prefix")
}

// Authorities returns the files of all authorities of client certificates that the flags name.
func Authorities(n *run.Node) []string {
	var c Config
	Apply(n, &c)
	return slices.Concat(c.ClientAuthorities, c.ProxyAuthorities)
}
