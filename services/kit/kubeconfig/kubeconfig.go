// Package kubeconfig reads the kubeconfig files that say where a remote service is, and
// which identity its callers have there: the webhooks of admission and authz. It sends
// nothing. It serves "Admission plugins" and "Authorization notes" of the specification.
package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/portico-platform/portico/services/webhook"
)

// File is a kubeconfig file.
type File struct {
	path   string
	config *api.Config
}

// Read reads a file. Relative paths in it start in its folder.
func Read(path string) (File, error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	config, err := rules.Load()
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return File{path, config}, nil
}

// Remote returns the service of the current context, which has to be at an https URL.
func (f File) Remote() (webhook.Config, error) {
	config, err := clientcmd.NewDefaultClientConfig(*f.config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return webhook.Config{}, fmt.Errorf("%s: %w", f.path, err)
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return webhook.Config{}, fmt.Errorf("%s: cluster.server: %q is not an https URL", f.path, config.Host)
	}
	who := identity(config)
	if who.Err != nil {
		return webhook.Config{}, fmt.Errorf("%s: %w", f.path, who.Err)
	}
	return webhook.Config{URL: &config.Host, Identity: who}, nil
}

// Identities returns who to be for each host and port, and checks all users in the file.
func (f File) Identities() (func(hostPort string) webhook.Identity, error) {
	known := map[string]webhook.Identity{}
	for name, user := range f.config.AuthInfos {
		who := identityOf(user)
		if who.Err != nil {
			return nil, fmt.Errorf("%s: users[%s]: %w", f.path, name, who.Err)
		}
		known[name] = who
	}
	return func(hostPort string) webhook.Identity {
		for _, name := range f.names(hostPort) {
			if who, ok := known[name]; ok {
				return who
			}
		}
		return webhook.Identity{}
	}, nil
}

// names returns the users that a host and port may have, the first of which that exists
// counts: its own name, those with a star in place of its first parts, the same without
// the port of https, any, and the user of the current context.
func (f File) names(hostPort string) (names []string) {
	add := func(target string) {
		names = append(names, target)
		for rest := target; ; {
			_, after, more := strings.Cut(rest, ".")
			if !more {
				return
			}
			names, rest = append(names, "*."+after), after
		}
	}
	add(hostPort)
	if host, port, err := net.SplitHostPort(hostPort); err == nil && port == "443" {
		add(host)
	}
	names = append(names, "*")
	if current := f.config.Contexts[f.config.CurrentContext]; current != nil {
		names = append(names, current.AuthInfo)
	}
	return names
}

// identityOf returns the identity of a user in a file.
func identityOf(user *api.AuthInfo) webhook.Identity {
	if user.AuthProvider != nil {
		return webhook.Identity{Err: errors.New("auth-provider: not supported")}
	}
	if user.ClientKey+string(user.ClientKeyData) != "" && user.ClientCertificate+string(user.ClientCertificateData) == "" {
		return webhook.Identity{Err: errors.New("client-key: requires client-certificate")}
	}
	alone := api.Config{AuthInfos: map[string]*api.AuthInfo{"user": user}, Clusters: map[string]*api.Cluster{"any": {Server: "https://any"}},
		Contexts: map[string]*api.Context{"any": {Cluster: "any", AuthInfo: "user"}}}
	if err := clientcmd.ConfirmUsable(alone, "any"); err != nil {
		return webhook.Identity{Err: err}
	}
	return identity(&rest.Config{
		BearerToken: user.Token, BearerTokenFile: user.TokenFile, Username: user.Username, Password: user.Password, ExecProvider: user.Exec,
		Impersonate: rest.ImpersonationConfig{UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra},
		TLSClientConfig: rest.TLSClientConfig{CertFile: user.ClientCertificate, CertData: user.ClientCertificateData,
			KeyFile: user.ClientKey, KeyData: user.ClientKeyData},
	})
}

// identity returns the identity of a client configuration. Files are read now, so that
// those that cannot be read are noticed.
func identity(config *rest.Config) webhook.Identity {
	t, err := config.TransportConfig()
	if err != nil {
		return webhook.Identity{Err: err}
	}
	secured, err := transport.TLSConfigFor(t)
	if err != nil {
		return webhook.Identity{Err: err}
	}
	if _, err := transport.HTTPWrappersForConfig(t, http.DefaultTransport); err != nil {
		return webhook.Identity{Err: err}
	}
	return webhook.Identity{TLS: secured, Wrap: func(next http.RoundTripper) http.RoundTripper {
		wrapped, err := transport.HTTPWrappersForConfig(t, next)
		if err != nil { // it has been made before
			return failing{err}
		}
		return wrapped
	}}
}

// failing sends nothing.
type failing struct{ err error }

// RoundTrip implements http.RoundTripper.
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
