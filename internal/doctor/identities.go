package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/internal/pki"
	"github.com/portico-platform/portico/internal/pki/files"
)

// probeSubject is where users of NATS who may not publish try to. No type is called so.
const probeSubject = "changes.core.doctor"

// identities examines the folder of portico pki: the end, the authority and the key of each
// certificate, and who can read the files.
func (e *examination) identities(dir string) {
	authorities, err := readAuthorities(dir)
	if err != nil {
		e.bad(Finding{Fail, "pki", dir, err.Error(), "specify the folder that portico pki init created"})
		return
	}
	good := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files.Hidden(entry.Name()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !entry.IsDir() && info.Mode().Perm()&0o077 != 0 {
			e.bad(Finding{Warn, "pki", path, fmt.Sprintf("mode %04o: others can read it", info.Mode().Perm()), "chmod 600"})
		}
		if filepath.Ext(path) == ".crt" && !strings.HasSuffix(path, "-ca.crt") {
			good += e.identity(path, authorities)
		}
		return nil
	})
	if err != nil {
		e.bad(Finding{Fail, "pki", dir, err.Error(), "run the doctor as the owner of the folder"})
	}
	e.ok("pki", dir, "%d certificates are valid: signed by these authorities, with their key, and not about to expire", good)
}

func readAuthorities(dir string) (all []*x509.Certificate, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "authorities", "*.crt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		cert, err := readCertificate(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no authorities")
	}
	return all, nil
}

// identity examines one certificate, and returns 1 when it is good.
func (e *examination) identity(path string, authorities []*x509.Certificate) int {
	var cert *x509.Certificate
	content, err := os.ReadFile(path)
	if err == nil {
		cert, err = parse(content)
	}
	if err != nil {
		e.bad(Finding{Fail, "pki", path, err.Error(), "portico pki issue NAME --replace"})
		return 0
	}
	signed := signedBy(authorities, cert, content)
	key := strings.TrimSuffix(path, ".crt") + ".key"
	left := cert.NotAfter.Sub(e.now())
	switch {
	case !signed:
		e.bad(Finding{Fail, "pki", path, "signed by none of the authorities", "portico pki issue NAME --replace"})
	case left <= 0:
		e.bad(Finding{Fail, "pki", path, "expired at " + cert.NotAfter.UTC().String(), "portico pki renew, and copy the folder"})
	case left < soon:
		e.bad(Finding{Warn, "pki", path, "expires at " + cert.NotAfter.UTC().String(), "portico pki renew, and copy the folder"})
	default:
		if _, err := os.Stat(key); err == nil {
			if _, err := tls.LoadX509KeyPair(path, key); err != nil {
				e.bad(Finding{Fail, "pki", path, err.Error(), "portico pki issue NAME --replace"})
				return 0
			}
		}
		return 1
	}
	return 0
}

// signedBy reports whether one of the authorities has signed a certificate, directly or by an
// intermediate in the content of its file, as authorities of others do.
func signedBy(authorities []*x509.Certificate, cert *x509.Certificate, content []byte) bool {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	intermediates.AppendCertsFromPEM(content)
	// Its expiry has a separate finding.
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: cert.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

// bus tries with each user of NATS what it may do and what it may not.
func (e *examination) bus(dir, servers string) {
	p, err := pki.Open(dir)
	if err != nil {
		e.bad(Finding{Fail, "nats", dir, err.Error(), "specify the folder that portico pki init created"})
		return
	}
	for _, name := range p.Folders() {
		folder := filepath.Join(dir, name)
		if _, err := os.Stat(filepath.Join(folder, "nats.seed")); err == nil {
			e.busUser(name, folder, servers)
		}
	}
}

func (e *examination) busUser(name, folder, servers string) {
	file := func(name string) string { return filepath.Join(folder, name) }
	seed, err := nats.NkeyOptionFromSeed(file("nats.seed"))
	if err != nil {
		e.bad(Finding{Fail, "nats", name, err.Error(), "portico pki issue " + name + " --replace"})
		return
	}
	conn, err := nats.Connect(servers, nats.Name("portico-doctor"), nats.Timeout(timeout), nats.NoReconnect(), seed,
		nats.RootCAs(file("nats-ca.crt")), nats.ClientCert(file("nats.crt"), file("nats.key")), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		e.bad(Finding{Fail, "nats", name, err.Error(), "check that the NATS servers run with the server.conf of this folder, and that the certificates are valid"})
		return
	}
	defer conn.Close()
	hub := name == "watch-hub"
	// The hub must not listen, and no other service may publish.
	refused := func(do func() error) bool {
		err := do()
		if err == nil {
			err = conn.FlushTimeout(timeout)
		}
		return errors.Is(errors.Join(err, conn.LastError()), nats.ErrPermissionViolation)
	}
	listens := !refused(func() error { _, err := conn.SubscribeSync(probeSubject); return err })
	if listens == hub {
		e.bad(Finding{Fail, "nats", name, map[bool]string{true: "may subscribe to changes, but should not", false: "may not subscribe to changes"}[listens],
			"configure NATS with the server.conf of its folder, or the permissions of deploy/nats/permissions.conf"})
		return
	}
	if !hub && !refused(func() error { return conn.Publish(probeSubject, nil) }) {
		e.bad(Finding{Fail, "nats", name, "may publish changes, but should not", "configure NATS with the server.conf of its folder, or the permissions of deploy/nats/permissions.conf"})
		return
	}
	e.ok("nats", name, "has exactly the expected permissions")
}
