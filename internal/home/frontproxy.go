package home

import (
	"errors"

	"github.com/portico-platform/portico/services/kit/run"
)

// proxyName is the common name of the front door's client certificate for extensions.
const proxyName = "front-proxy-client"

// setProxyFlags points the front door to its client certificate for extensions, and authn and
// the published trust to the authority of that. The flags belong together: if the user sets
// one, none of them gets a value here, so that names and headers never combine with an
// authority they are not meant for.
func (h *home) setProxyFlags(n *run.Node) error {
	values := map[string]string{
		"proxy-client-cert-file": h.path(proxyCert), "proxy-client-key-file": h.path(proxyKey),
		"requestheader-client-ca-file":       h.path(proxyCACert),
		"requestheader-allowed-names":        proxyName,
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
	}
	for flag := range values {
		if f := n.Flags.Lookup(flag); f != nil && f.Changed {
			return nil
		}
	}
	var errs []error
	for flag, value := range values {
		errs = append(errs, n.Default(flag, value))
	}
	return errors.Join(errs...)
}
