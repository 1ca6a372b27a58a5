package portico

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AuthenticatedUser is a user with a client certificate.
type AuthenticatedUser struct {
	config  *rest.Config
	dir     string
	kubectl *KubeCtl
}

// Config returns the configuration of the user's clients.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig returns a kubeconfig of the user.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) { return kubeConfig(u.config) }

// Kubectl returns kubectl with a kubeconfig of the user, which is removed when the environment
// stops. The program is $TEST_ASSET_KUBECTL, kubectl in $KUBEBUILDER_ASSETS or the one of PATH.
func (u *AuthenticatedUser) Kubectl() (*KubeCtl, error) {
	if u.kubectl != nil {
		return u.kubectl, nil
	}
	content, err := u.KubeConfig()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(u.dir, "*.kubeconfig")
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	u.kubectl = &KubeCtl{Path: kubectlPath(), Opts: []string{"--kubeconfig=" + file.Name()}}
	return u.kubectl, nil
}

// KubeCtl runs kubectl.
type KubeCtl struct {
	Path string   // the program
	Opts []string // before the arguments of each run
}

// Run runs kubectl and returns its output.
func (k *KubeCtl) Run(args ...string) (stdout, stderr io.Reader, err error) {
	var out, diagnostics bytes.Buffer
	command := exec.Command(k.Path, append(append([]string{}, k.Opts...), args...)...)
	command.Stdout, command.Stderr = &out, &diagnostics
	err = command.Run()
	return &out, &diagnostics, err
}

func kubectlPath() string {
	if path := os.Getenv("TEST_ASSET_KUBECTL"); path != "" {
		return path
	}
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return filepath.Join(dir, "kubectl")
	}
	return "kubectl"
}

// addUser issues the client certificate of a user.
func (c *ControlPlane) addUser(user envtest.User, base *rest.Config) (*AuthenticatedUser, error) {
	if user.Name == "" {
		return nil, errors.New("adding a user: Name is required")
	}
	if c.running == nil {
		return nil, fmt.Errorf("adding user %s: the environment has not been started", user.Name)
	}
	admin, err := c.config()
	if err != nil {
		return nil, err
	}
	config := &rest.Config{QPS: -1}
	if base != nil {
		config = rest.CopyConfig(base)
	}
	config.Host, config.CAData = admin.Host, admin.CAData
	if config.CertData, config.KeyData, err = c.issue(user); err != nil {
		return nil, fmt.Errorf("adding user %s: %w", user.Name, err)
	}
	return &AuthenticatedUser{config: config, dir: c.dir}, nil
}

// issue returns a client certificate and its key, signed by the authority of the data folder.
func (c *ControlPlane) issue(user envtest.User) (certificate, key []byte, err error) {
	authority, err := cert.CertsFromFile(filepath.Join(c.dir, "pki", "signing-ca.crt"))
	if err != nil {
		return nil, nil, err
	}
	signer, err := keyutil.PrivateKeyFromFile(filepath.Join(c.dir, "pki", "signing-ca.key"))
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user.Name, Organization: user.Groups},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority[0], private.Public(), signer.(crypto.Signer))
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: raw}), nil
}

// kubeConfig returns a kubeconfig with the server and the credentials of a configuration.
func kubeConfig(c *rest.Config) ([]byte, error) {
	const name = "portico"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	config.AuthInfos[name] = &api.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
