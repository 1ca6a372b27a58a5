package home

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
)

// proxyFlags returns the flags about proxies that have a value.
func proxyFlags(flags *pflag.FlagSet) map[string]string {
	set := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		about := strings.HasPrefix(f.Name, "requestheader-") || strings.HasPrefix(f.Name, "proxy-client-")
		if value := f.Value.String(); about && value != "" && value != "[]" {
			set[f.Name] = value
		}
	})
	return set
}

// TestProxyFlags: the flags about proxies have values together, or only those of the user.
func TestProxyFlags(t *testing.T) {
	dir := t.TempDir()
	own := map[string]string{
		"proxy-client-cert-file": filepath.Join(dir, proxyCert), "proxy-client-key-file": filepath.Join(dir, proxyKey),
		"requestheader-client-ca-file": filepath.Join(dir, proxyCACert), "requestheader-allowed-names": "[front-proxy-client]",
		"requestheader-username-headers": "[X-Remote-User]", "requestheader-group-headers": "[X-Remote-Group]",
		"requestheader-extra-headers-prefix": "[X-Remote-Extra-]",
	}
	for args, want := range map[string]map[string]string{
		"": own,
		"--requestheader-client-ca-file=mine.crt --requestheader-username-headers=X-User": {
			"requestheader-client-ca-file": "mine.crt", "requestheader-username-headers": "[X-User]"},
		"--proxy-client-cert-file=mine.crt --proxy-client-key-file=mine.key": {"proxy-client-cert-file": "mine.crt", "proxy-client-key-file": "mine.key"},
		"--requestheader-client-ca-file=":                                    {},
	} {
		flags, err := startHome(t, dir, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := proxyFlags(flags); !maps.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", args, got, want)
		}
	}
}

// TestProxyCertificate: the certificate is for clients, of the front-proxy authority and of no
// other one of the folder. It is renewed for the same key.
func TestProxyCertificate(t *testing.T) {
	h, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.makeCertificates([]string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, h.dir) // checks the modes, too
	if _, err := tls.LoadX509KeyPair(h.path(proxyCert), h.path(proxyKey)); err != nil {
		t.Fatal(err)
	}
	client := parsed(t, before[h.path(proxyCert)])
	if client.Subject.CommonName != "front-proxy-client" || len(client.Subject.Organization) > 0 || client.IsCA {
		t.Errorf("the certificate is of %v, CA %v", client.Subject, client.IsCA)
	}
	for _, c := range []struct {
		authority string
		usage     x509.ExtKeyUsage
		valid     bool
	}{{proxyCACert, x509.ExtKeyUsageClientAuth, true}, {proxyCACert, x509.ExtKeyUsageServerAuth, false},
		{signingCert, x509.ExtKeyUsageClientAuth, false}, {caCert, x509.ExtKeyUsageClientAuth, false}} {
		roots := x509.NewCertPool()
		roots.AddCert(parsed(t, before[h.path(c.authority)]))
		_, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{c.usage}})
		if (err == nil) != c.valid {
			t.Errorf("by %s for usage %v: %v", c.authority, c.usage, err)
		}
	}

	key, err := h.key(proxyKey)
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := h.authority("", proxyCACert, proxyCAKey)
	if err != nil {
		t.Fatal(err)
	}
	old, err := template(proxyName, renewBefore-time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	content, err := certificate(old, proxies.cert, key.Public(), proxies.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.write(proxyCert, content); err != nil {
		t.Fatal(err)
	}
	if err := h.makeCertificates([]string{"localhost"}); err != nil {
		t.Fatal(err)
	}
	after := contents(t, h.dir)
	if renewed := parsed(t, after[h.path(proxyCert)]); time.Until(renewed.NotAfter) < leafLife-time.Hour {
		t.Errorf("a certificate that expires soon was not renewed: it ends %v", renewed.NotAfter)
	}
	for _, file := range []string{proxyKey, proxyCACert, proxyCAKey, servingCert} {
		if before[h.path(file)] != after[h.path(file)] {
			t.Errorf("%s was replaced with the certificate", file)
		}
	}
}

func parsed(t *testing.T, content string) *x509.Certificate {
	t.Helper()
	certs, err := cert.ParseCertsPEM([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}
