package harness

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	Cert *x509.Certificate
	Key  crypto.Signer
	PEM  []byte
}

// NewAuthority makes a self-signed CA.
func NewAuthority(name string) *Authority {
	key := newKey()
	tmpl := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(240 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key))
	return &Authority{must(x509.ParseCertificate(der)), key, pemBlock("CERTIFICATE", der)}
}

// Issue signs a leaf certificate; change may alter the template.
func (a *Authority) Issue(subject pkix.Name, change func(*x509.Certificate)) tls.Certificate {
	key := newKey()
	tmpl := &x509.Certificate{
		SerialNumber: serial(), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(tmpl)
	}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, a.Cert, key.Public(), a.Key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Server issues a serving certificate for 127.0.0.1 and localhost.
func (a *Authority) Server() tls.Certificate {
	return a.Issue(pkix.Name{CommonName: "localhost"}, func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

// Client issues a client certificate and returns an identity that uses it.
func (a *Authority) Client(name string, organizations ...string) Identity {
	return WithCert(name, a.Issue(pkix.Name{CommonName: name, Organization: organizations}, nil))
}

// WithCert returns an identity that presents a client certificate.
func WithCert(name string, cert tls.Certificate) Identity {
	return Identity{Name: name, client: newClient(&cert)}
}

// With returns the same identity with a bearer token added.
func (id Identity) With(token string) Identity { id.Token = token; return id }

var plainClient = newClient(nil)

func newClient(cert *tls.Certificate) *http.Client {
	conf := &tls.Config{InsecureSkipVerify: true}
	if cert != nil {
		// offered whatever CAs the server names
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: conf, MaxIdleConnsPerHost: 16}}
}

// NamedAuthorities returns the subjects (DER) of the authorities that the server names when it
// asks for a client certificate.
func (t *T) NamedAuthorities() (subjects [][]byte) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", t.Server.port), &tls.Config{InsecureSkipVerify: true,
		GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			subjects = r.AcceptableCAs
			return &tls.Certificate{}, nil
		}})
	t.True(err == nil, "a handshake, got %v", err)
	_ = conn.Close()
	return subjects
}

// Request describes a PKCS#10 certificate request.
type Request struct {
	CN     string
	Orgs   []string
	DNS    []string
	IPs    []string
	Emails []string
	URIs   []string
}

// PEM returns the signed request in PEM.
func (r Request) PEM() []byte {
	tmpl := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: r.CN, Organization: r.Orgs},
		DNSNames: r.DNS, EmailAddresses: r.Emails,
	}
	for _, ip := range r.IPs {
		tmpl.IPAddresses = append(tmpl.IPAddresses, net.ParseIP(ip))
	}
	for _, u := range r.URIs {
		tmpl.URIs = append(tmpl.URIs, must(url.Parse(u)))
	}
	return pemBlock("CERTIFICATE REQUEST", must(x509.CreateCertificateRequest(rand.Reader, tmpl, newKey())))
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func newRSA() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) }

func serial() *big.Int { return must(rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))) }

func pemBlock(label string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

func keyPEM(key any) []byte {
	return pemBlock("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
