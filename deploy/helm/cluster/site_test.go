// Package cluster makes a cluster of Portico, the controller manager and scheduler of
// Kubernetes 1.21, and kwok, whose nodes bring pods to Ready without running them. The
// chart is installed, upgraded and rolled back in it, and kubectl reaches the nodes through
// Portico.
package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	root = "../../.."
	// patience is the timeout of all operations, for busy machines.
	patience = 3 * time.Minute
)

// site is a running cluster.
type site struct {
	dir, kubeconfig string
	config          *rest.Config
	client          kubernetes.Interface
	nodeAddress     string // of kwok, which serves for all nodes
	nodeFiles       string // folder with the serving certificate of nodes
	kubectlPath     string
}

// program returns a program that `make helm-cluster-test` has built.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (make helm-cluster-test makes it)", err)
	}
	return path
}

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start starts Portico, with the flags by which it connects to nodes.
func start(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), nodeAddress: freeAddress(t), nodeFiles: t.TempDir(), kubectlPath: program(t, "kubectl")}
	certificate, key, err := cert.GenerateSelfSignedCertKey("node", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err := errors.Join(err, os.WriteFile(s.nodeFile("crt"), certificate, 0o600), os.WriteFile(s.nodeFile("key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	s.run(t, "portico", "--data-dir="+s.dir, "--vocabulary=k8s", "--emulated-version=1.21", "--bind-address=127.0.0.1", "--secure-port="+port, "--log-level=warn",
		"--kubelet-certificate-authority="+s.nodeFile("crt"), "--kubelet-preferred-address-types=InternalIP", "--connect-allow-cidrs=127.0.0.1/32")
	eventually(t, "Portico is ready", func() (err error) {
		if s.config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig); err != nil {
			return err
		}
		s.config.QPS = -1
		if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
			return err
		}
		return s.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	return s
}

func (s *site) nodeFile(extension string) string {
	return filepath.Join(s.nodeFiles, "node."+extension)
}

// run starts a program, which is stopped when the test ends.
func (s *site) run(t *testing.T, name string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	process := exec.Command(program(t, name), args...)
	process.Stdout, process.Stderr = &output, &output
	process.Env = append(os.Environ(), "HOME="+s.dir)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var failure error
	go func() { failure = process.Wait(); close(ended) }()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("%s has ended by itself: %v", name, failure)
		default:
			_ = process.Process.Signal(syscall.SIGTERM)
			<-ended
		}
		if t.Failed() {
			said := output.String()
			t.Logf("%s %s said: …%s", name, args[0], said[max(0, len(said)-8000):])
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

// startControllers starts the controller manager and the scheduler, each as its own user
// with the roles that the API has for it. Portico's own controllers are off there.
func (s *site) startControllers(t *testing.T) {
	t.Helper()
	own := []string{"namespace", "garbagecollector", "serviceaccount", "serviceaccount-token", "root-ca-cert-publisher", "resourcequota",
		"pvc-protection", "pv-protection", "csrsigning", "csrapproving", "csrcleaner"}
	// They end when they cannot renew in time, by default in ten seconds.
	long := []string{"--leader-elect-lease-duration=4m", "--leader-elect-renew-deadline=" + patience.String()}
	s.run(t, "cluster/kubernetes", "kube-controller-manager", "--kubeconfig="+s.issue(t, "system:kube-controller-manager"),
		"--use-service-account-credentials", "--secure-port=0", "--port=0", "--controllers=*,-"+strings.Join(own, ",-"), long[0], long[1])
	s.run(t, "cluster/kubernetes", "kube-scheduler", "--kubeconfig="+s.issue(t, "system:kube-scheduler"), "--secure-port=0", "--port=0", long[0], long[1])
}

// issue requests a client certificate for a user from the API, and returns a kubeconfig.
func (s *site) issue(t *testing.T, user string) (kubeconfig string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, key)
	if err != nil {
		t.Fatal(err)
	}
	requests := s.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a certificate for "+user, func() error {
		if request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{}); err == nil && len(request.Status.Certificate) == 0 {
			err = errors.New("it is not signed")
		}
		return err
	})
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range config.AuthInfos {
		own.Token, own.TokenFile = "", ""
		own.ClientCertificateData, own.ClientKeyData = request.Status.Certificate, secret
	}
	kubeconfig = filepath.Join(s.nodeFiles, user+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// command runs a program with the administrator's kubeconfig and returns its output.
func (s *site) command(ctx context.Context, path string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "HOME="+s.dir)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
