// Package controllers makes a cluster of Portico at release 1.36, the controller manager
// and the scheduler of Kubernetes 1.36, metrics-server, and kwok, whose nodes bring pods to
// their end without running them. Workloads of each kind run to their end in it, and the components
// log no error.
package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

const (
	root = "../.."
	// patience is the timeout of all waiting, for busy machines.
	patience = 3 * time.Minute
)

// site is a running cluster.
type site struct {
	dir, kubeconfig string
	authority       *authority // of the original; nil if Portico runs
	config          *rest.Config
	client          kubernetes.Interface
	components      []*component
}

// program returns a program that `make test-controllers` has built.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v (make test-controllers makes it)", err)
	}
	return path
}

// start starts Portico, with further flags of it.
func start(t *testing.T, flags ...string) *site {
	t.Helper()
	if *original != "" {
		return startOriginal(t)
	}
	s := &site{dir: t.TempDir()}
	s.kubeconfig = s.file("kubeconfig")
	s.run(t, "portico", append([]string{"--data-dir=" + s.dir, "--vocabulary=k8s", "--emulated-version=1.36", "--bind-address=127.0.0.1", "--secure-port=" + freePort(t), "--log-level=warn",
		"--connect-allow-cidrs=127.0.0.1/32,::1/128"}, flags...)...)
	s.connect(t)
	return s
}

// connect waits until the API is ready.
func (s *site) connect(t *testing.T) {
	t.Helper()
	eventually(t, "the API is ready", func() (err error) {
		if s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
			return err
		}
		s.config.QPS = -1
		if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
			return err
		}
		return s.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
}

// run starts a program of `make test-controllers`, which is stopped when the test ends.
func (s *site) run(t *testing.T, name string, args ...string) {
	t.Helper()
	s.start(t, program(t, name), args...)
}

// start starts a program, which is stopped when the test ends.
func (s *site) start(t *testing.T, name string, args ...string) {
	t.Helper()
	c := &component{name: filepath.Base(name) + " " + args[0]}
	process := exec.Command(name, args...)
	process.Stdout, process.Stderr = c, c
	process.Env = append(os.Environ(), "HOME="+s.dir)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	s.components = append(s.components, c)
	ended := make(chan struct{})
	var failure error
	go func() { failure = process.Wait(); close(ended) }()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("%s has ended by itself: %v", c.name, failure)
		default:
			_ = process.Process.Signal(syscall.SIGTERM)
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said: …%s", c.name, c.end(8000))
		}
	})
}

// eventually calls try until it succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// off are the controllers of Kubernetes whose work Portico does.
var off = []string{"namespace-controller", "garbage-collector-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller", "resourcequota-controller", "persistentvolumeclaim-protection-controller",
	"persistentvolume-protection-controller", "volumeattributesclass-protection-controller", "certificatesigningrequest-signing-controller", "certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller", "clusterrole-aggregation-controller"}

// startControllers starts the controller manager and the scheduler, each as its own user
// with the roles that the API has for it, and with further flags of both.
func (s *site) startControllers(t *testing.T, flags ...string) {
	t.Helper()
	own := []string{"--controllers=*,-" + strings.Join(off, ",-")}
	if s.authority != nil {
		own = s.controllerFlags()
	}
	own = append(own, flags...)
	s.run(t, "controllers/kubernetes", append([]string{"kube-controller-manager", "--kubeconfig=" + s.issue(t, "system:kube-controller-manager"),
		"--use-service-account-credentials", "--secure-port=0",
		"--horizontal-pod-autoscaler-sync-period=2s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=1s"}, own...)...)
	s.run(t, "controllers/kubernetes", append([]string{"kube-scheduler", "--kubeconfig=" + s.issue(t, "system:kube-scheduler"), "--secure-port=0"}, flags...)...)
}

// issue requests a client certificate for a user from the API, and returns a kubeconfig. The
// original has nobody to sign it before the controller manager runs.
func (s *site) issue(t *testing.T, user string) (kubeconfig string) {
	t.Helper()
	subject := pkix.Name{CommonName: user}
	if s.authority != nil {
		certificate, key := s.authority.issue(t, s, "pki/"+user, x509.ExtKeyUsageClientAuth, x509.Certificate{Subject: subject})
		return s.configFor(t, user, api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	}
	certificate, key := s.sign(t, certificatesv1.KubeAPIServerClientSignerName, certificatesv1.UsageClientAuth, x509.CertificateRequest{Subject: subject})
	return s.configFor(t, user, api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

// configFor returns a kubeconfig with the credentials of a user.
func (s *site) configFor(t *testing.T, user string, credentials api.AuthInfo) (kubeconfig string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &credentials
	}
	kubeconfig = s.file(user + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// sign requests a certificate from the API, and returns it with its key.
func (s *site) sign(t *testing.T, signer string, usage certificatesv1.KeyUsage, template x509.CertificateRequest) (certificate, private []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := s.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, usage},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a certificate for "+template.Subject.CommonName, func() error {
		if request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{}); err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("it is not signed: %+v", request.Status.Conditions)
		}
		return err
	})
	if private, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return request.Status.Certificate, private
}

// file returns the path of a file of the cluster.
func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// keep writes a file that only this user may read, and returns its path.
func (s *site) keep(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := s.file(name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// module returns the folder of a module that go.mod requires.
func module(t *testing.T, path string) string {
	t.Helper()
	command := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path)
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
