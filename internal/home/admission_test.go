package home

import (
	"crypto/x509"
	"path/filepath"
	"testing"
)

// TestAdmissionCertificate: admission has a client certificate of an authority of its own, with
// the name that it has between processes, unless the user has chosen another one.
func TestAdmissionCertificate(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string][2]string{
		"":                                      {filepath.Join(dir, admissionCert), filepath.Join(dir, admissionKey)},
		"--admission-client-cert-file=mine.crt": {"mine.crt", ""},
	} {
		var list []string
		if args != "" {
			list = []string{args}
		}
		flags, err := startHome(t, dir, list...)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{flags.Lookup("admission-client-cert-file").Value.String(), flags.Lookup("admission-client-key-file").Value.String()}; got != want {
			t.Errorf("%q: got %v, want %v", args, got, want)
		}
	}
	files := contents(t, dir) // checks the modes, too
	client := parsed(t, files[filepath.Join(dir, admissionCert)])
	if client.Subject.CommonName != "admission" || client.VerifyHostname("admission") != nil || len(client.Subject.Organization) > 0 || client.IsCA {
		t.Errorf("the certificate is of %v, %v", client.Subject, client.DNSNames)
	}
	for authority, valid := range map[string]bool{admissionCACert: true, proxyCACert: false, signingCert: false, caCert: false} {
		roots := x509.NewCertPool()
		roots.AddCert(parsed(t, files[filepath.Join(dir, authority)]))
		if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); (err == nil) != valid {
			t.Errorf("by %s: %v", authority, err)
		}
	}
}
