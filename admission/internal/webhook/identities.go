package webhook

import (
	"net"
	"net/url"
	"path/filepath"

	"github.com/portico-platform/portico/admission/internal/config"
	"github.com/portico-platform/portico/services/kit/kubeconfig"
	"github.com/portico-platform/portico/services/webhook"
)

// Identities returns who admission is to the webhook at a host and port. A nil one makes
// it nobody.
type Identities func(hostPort string) webhook.Identity

// ParseIdentities reads the configuration of the plugins that ask webhooks, and the
// kubeconfig file that it names: its users are named after the hosts of webhooks.
func ParseIdentities(d config.Document) (Identities, error) {
	var read struct {
		APIVersion     string `json:"apiVersion"`
		Kind           string `json:"kind"`
		KubeConfigFile string `json:"kubeConfigFile"`
	}
	err := d.DecodeVersion(&read, config.Version{Group: "apiserver.config.", Version: "v1", Kind: "WebhookAdmissionConfiguration"},
		config.Version{Group: "apiserver.config.", Version: "v1alpha1", Kind: "WebhookAdmission"})
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(read.KubeConfigFile) {
		return nil, d.Invalid("kubeConfigFile", "invalid value %q: must be an absolute file path", read.KubeConfigFile)
	}
	file, err := kubeconfig.Read(read.KubeConfigFile)
	if err != nil {
		return nil, d.Invalid("kubeConfigFile", "%v", err)
	}
	identities, err := file.Identities()
	if err != nil {
		return nil, d.Invalid("kubeConfigFile", "%v", err)
	}
	return identities, nil
}

// Or returns identities for which admission is other to the webhooks that the configuration
// says nothing about.
func (i Identities) Or(other webhook.Identity) Identities {
	return func(hostPort string) webhook.Identity {
		if i == nil {
			return other
		}
		known := i(hostPort)
		if known.TLS == nil && known.Wrap == nil && known.Err == nil {
			return other
		}
		return known
	}
}

// of returns the identity for a client configuration.
func (i Identities) of(c webhook.Config) webhook.Identity {
	if i == nil {
		return webhook.Identity{}
	}
	const https = "443"
	switch {
	case c.URL != nil:
		at, err := url.Parse(*c.URL)
		if err != nil {
			return webhook.Identity{Err: err}
		}
		if at.Port() == "" {
			return i(net.JoinHostPort(at.Host, https))
		}
		return i(at.Host)
	case c.Service != nil:
		port := https
		if c.Service.Port != nil {
			port = c.Service.Port.String()
		}
		return i(net.JoinHostPort(c.Service.Name+"."+c.Service.Namespace+".svc", port))
	}
	return webhook.Identity{}
}
