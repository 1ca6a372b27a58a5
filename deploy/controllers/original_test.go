package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

var original = flag.String("original", "", "`folder` with the programs apiserver and etcd of `make bench-peer`: run beside these, and only list what is logged")

// users are those of the original, with their groups. Their tokens are their names.
var users = map[string]string{"admin": "system:masters", "system:kube-controller-manager": "", "system:kube-scheduler": ""}

// startOriginal starts the original instead of Portico.
func startOriginal(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), original: true}
	peer, secure := freePort(t), freePort(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	tokens := ""
	for user, groups := range users {
		tokens += fmt.Sprintf("%s,%s,%s,%q\n", user, user, user, groups)
	}
	for name, content := range map[string]string{"sa.key": string(secret), "tokens.csv": tokens} {
		if err := os.WriteFile(s.file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t, filepath.Join(*original, "etcd"), "--data-dir="+s.file("etcd"), "--log-level=warn", "--listen-client-urls=http://127.0.0.1:"+peer,
		"--advertise-client-urls=http://127.0.0.1:"+peer, "--listen-peer-urls=http://127.0.0.1:0")
	s.start(t, filepath.Join(*original, "apiserver"), "--etcd-servers=http://127.0.0.1:"+peer, "--bind-address=127.0.0.1", "--secure-port="+secure, "--cert-dir="+s.dir,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.file("sa.key"), "--service-account-signing-key-file="+s.file("sa.key"),
		"--token-auth-file="+s.file("tokens.csv"), "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24")
	s.kubeconfig = s.withToken(t, "admin", "https://127.0.0.1:"+secure)
	s.connect(t)
	return s
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// withToken writes a kubeconfig of a user of the original.
func (s *site) withToken(t *testing.T, user, server string) (kubeconfig string) {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server, InsecureSkipTLSVerify: true}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: user}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "c"
	kubeconfig = s.file(user + ".kubeconfig")
	if err := clientcmd.WriteToFile(*c, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
