package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// check compares files that belong together, and calls add for each, with an error if it does not
// fit. Files that are not here are not missed, except one of a pair.
func (p *PKI) check(add func(file string, err error)) {
	left, err := p.tree.Interrupted()
	add(".", err)
	for _, name := range left {
		add(name, errors.New("a change was interrupted: run portico pki renew"))
	}
	roots := map[string][]byte{}
	for _, name := range authorityNames() {
		file := authorityFile(name, ".crt")
		content, err := p.read(file)
		add(file, err)
		roots[name] = content
		if _, remote := p.site.CAS[name]; !remote {
			_, err = p.pair(authoritiesDir + "/" + name)
			add(file, err)
		}
	}
	for _, f := range p.site.folders() {
		if missing, err := p.missing(f.name); missing || err != nil {
			add(f.name, err)
			continue
		}
		p.checkFolder(f, roots, add)
	}
	lacking, err := p.lackingServerConfigs()
	add("server.conf", err)
	for _, file := range lacking {
		add(file, errors.New("not all users of NATS are in it: run portico pki renew"))
	}
}

func (p *PKI) checkFolder(f folder, roots map[string][]byte, add func(string, error)) {
	for _, r := range f.certificates {
		file := f.name + "/" + r.file
		pair, err := p.pair(file)
		if err == nil && pair != nil && roots[r.authority] != nil {
			err = p.verify(pair, r, roots[r.authority])
		}
		add(file+".crt", err)
	}
	for file, authorities := range f.trust {
		want := []byte{}
		for _, name := range authorities {
			want = append(want, roots[name]...)
		}
		add(f.name+"/"+file, p.same(f.name+"/"+file, want, fmt.Sprintf("of the authorities %q", authorities)))
	}
	for file, from := range f.copies {
		want, err := p.read(from)
		if err == nil && want != nil {
			err = p.same(f.name+"/"+file, want, from)
		}
		add(f.name+"/"+file, err)
	}
	if f.administrator {
		other, err := p.outdatedClientConfig(f)
		if other {
			err = errors.New("it has another certificate than " + f.name + "/user.crt: run portico pki renew")
		}
		add(f.name+"/"+clientConfig, err)
	}
}

// pair reads a certificate and its key, and returns nil if neither exists.
func (p *PKI) pair(file string) (*tls.Certificate, error) {
	cert, err := p.read(file + ".crt")
	if err != nil {
		return nil, err
	}
	key, err := p.read(file + ".key")
	switch {
	case err != nil:
		return nil, err
	case cert == nil && key == nil:
		return nil, nil
	case cert == nil || key == nil:
		return nil, errors.New("it has no key, or the key has no certificate")
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

// verify checks that the certificate is of its authority and for its usages. Whether it has
// expired is not of interest here.
func (p *PKI) verify(pair *tls.Certificate, r request, root []byte) error {
	at := p.now()
	if at.After(pair.Leaf.NotAfter) {
		at = pair.Leaf.NotAfter
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: at}
	o.Roots.AppendCertsFromPEM(root)
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			o.Intermediates.AddCert(c)
		}
	}
	for _, usage := range r.template(pair.Leaf.PublicKey).ExtKeyUsage {
		o.KeyUsages = []x509.ExtKeyUsage{usage}
		if _, err := pair.Leaf.Verify(o); err != nil {
			return fmt.Errorf("it is not of the authority %q: %w", r.authority, err)
		}
	}
	return nil
}

// same compares a file, if it exists, with what it should hold.
func (p *PKI) same(file string, want []byte, of string) error {
	content, err := p.read(file)
	if err == nil && content != nil && !bytes.Equal(content, want) {
		return fmt.Errorf("it differs from that %s", of)
	}
	return err
}

// read returns the content of a file, nil if it does not exist.
func (p *PKI) read(name string) ([]byte, error) {
	content, err := os.ReadFile(p.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// outdatedClientConfig reports whether the administrator's kubeconfig, which is written after the
// certificate, holds another one.
func (p *PKI) outdatedClientConfig(f folder) (bool, error) {
	content, err := p.read(f.name + "/" + clientConfig)
	if err != nil {
		return false, err
	}
	cert, err := p.read(f.name + "/user.crt")
	if content == nil || cert == nil || err != nil {
		return false, err
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return false, err
	}
	user := config.AuthInfos[f.name]
	return user != nil && !bytes.Equal(user.ClientCertificateData, cert), nil
}
