package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

var original = flag.String("original", "", "`folder` with the programs apiserver and etcd of `make bench-peer`: run beside these, and only list what is logged")

// proxy is the name in the certificate by which extensions know the original.
const proxy = "front-proxy-client"

// startOriginal starts the original instead of Portico, with the same files for clients.
func startOriginal(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	if err := os.Mkdir(s.file("pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.authority = s.newAuthority(t, "pki/signing-ca")
	s.newAuthority(t, "pki/front-proxy-ca").issue(t, s, "pki/proxy", x509.ExtKeyUsageClientAuth, x509.Certificate{Subject: pkix.Name{CommonName: proxy}})
	s.authority.issue(t, s, "pki/serving", x509.ExtKeyUsageServerAuth, x509.Certificate{Subject: pkix.Name{CommonName: "apiserver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s.privateKey(t, "pki/sa.key")
	stored, secure := "http://127.0.0.1:"+freePort(t), freePort(t)
	s.start(t, filepath.Join(*original, "etcd"), "--data-dir="+s.file("etcd"), "--log-level=warn", "--listen-client-urls="+stored,
		"--advertise-client-urls="+stored, "--listen-peer-urls=http://127.0.0.1:0")
	s.start(t, filepath.Join(*original, "apiserver"), "--etcd-servers="+stored, "--bind-address=127.0.0.1", "--secure-port="+secure, "--cert-dir="+s.dir,
		"--tls-cert-file="+s.file("pki/serving.crt"), "--tls-private-key-file="+s.file("pki/serving.key"), "--client-ca-file="+s.file("pki/signing-ca.crt"),
		"--requestheader-client-ca-file="+s.file("pki/front-proxy-ca.crt"), "--requestheader-allowed-names="+proxy, "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+s.file("pki/proxy.crt"), "--proxy-client-key-file="+s.file("pki/proxy.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.file("pki/sa.key"), "--service-account-signing-key-file="+s.file("pki/sa.key"),
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24")
	s.kubeconfig = s.file("kubeconfig")
	certificate, key := s.authority.issue(t, s, "pki/admin", x509.ExtKeyUsageClientAuth, x509.Certificate{Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}})
	config := api.NewConfig()
	config.Clusters["original"] = &api.Cluster{Server: "https://127.0.0.1:" + secure, CertificateAuthority: s.file("pki/signing-ca.crt")}
	config.AuthInfos["admin"] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["original"] = &api.Context{Cluster: "original", AuthInfo: "admin"}
	config.CurrentContext = "original"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.connect(t)
	return s
}

// controllerFlags are the flags with which the controller manager does for the original what
// the workers of Portico do.
func (s *site) controllerFlags() []string {
	return []string{"--service-account-private-key-file=" + s.file("pki/sa.key"), "--root-ca-file=" + s.file("pki/signing-ca.crt"),
		"--cluster-signing-cert-file=" + s.file("pki/signing-ca.crt"), "--cluster-signing-key-file=" + s.file("pki/signing-ca.key")}
}

// privateKey makes a key and keeps it in a file.
func (s *site) privateKey(t *testing.T, name string) (key *ecdsa.PrivateKey, encoded []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if encoded, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	s.keep(t, name, encoded)
	return key, encoded
}

// authority is a certificate authority of the original. The controller manager signs with it, too.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int64
}

// newAuthority makes an authority and keeps its certificate and key.
func (s *site) newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, _ := s.privateKey(t, name+".key")
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: filepath.Base(name)}, key)
	if err != nil {
		t.Fatal(err)
	}
	s.keep(t, name+".crt", pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw}))
	return &authority{certificate: certificate, key: key}
}

// issue makes a certificate, keeps it with its key, and returns both.
func (a *authority) issue(t *testing.T, s *site, name string, usage x509.ExtKeyUsage, template x509.Certificate) (certificate, private []byte) {
	t.Helper()
	key, private := s.privateKey(t, name+".key")
	a.issued++
	template.SerialNumber = big.NewInt(a.issued)
	template.NotBefore, template.NotAfter = a.certificate.NotBefore, time.Now().Add(24*time.Hour)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	s.keep(t, name+".crt", certificate)
	return certificate, private
}
