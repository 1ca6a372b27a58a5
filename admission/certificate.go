package admission

import (
	"crypto/tls"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/admission/internal/webhook"
	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	remote "github.com/portico-platform/portico/services/webhook"
)

const certFlag, keyFlag = "admission-client-cert-file", "admission-client-key-file"

func clientFlags(fs *pflag.FlagSet) {
	fs.String(certFlag, "", "client certificate of admission for admission services, and for webhooks without credentials in --admission-control-config-file (PEM); read again when it changes; default for admission services: the certificate of the process")
	fs.String(keyFlag, "", "private key for --"+certFlag+" (PEM)")
	expiry.Flags(fs, expiry.Own, certFlag)
}

// certificate returns the client certificate of the flags for a server that requests one; nil
// if there are no flags.
type certificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

// clientCertificate reads the flags. The error is run.ErrUsage if they are invalid.
func clientCertificate(n *run.Node) (certificate, error) {
	files := keypair.Files{What: "client certificate of admission"}
	files.Cert, _ = n.Flags.GetString(certFlag)
	files.Key, _ = n.Flags.GetString(keyFlag)
	switch {
	case (files.Cert == "") != (files.Key == ""):
		return nil, run.Usagef("--%s and --%s must be used together", certFlag, keyFlag)
	case files.Cert == "":
		return nil, nil
	}
	pair, err := keypair.Open(files, n.Log)
	if err != nil {
		return nil, run.Usagef("--%s, --%s: %v", certFlag, keyFlag, err)
	}
	return func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		own := pair.Get()
		if asked.SupportsCertificate(own) != nil { // of authorities that the server does not name
			return &tls.Certificate{}, nil
		}
		return own, nil
	}, nil
}

// known returns identities that include the certificate where they say nothing else.
func (c certificate) known(of webhook.Identities) webhook.Identities {
	if c == nil {
		return of
	}
	return of.Or(remote.Identity{TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: c}})
}

// orProcess returns the certificate, or that of the process.
func (c certificate) orProcess(n *run.Node) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if identity := n.Identity(); c == nil && identity != nil {
		return identity.Certificate
	}
	return c
}
