// Package compose tests the containers of compose.yaml: it starts them as a user does,
// kills, pauses and scales them, and checks the effect on clients.
package compose

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-platform/portico/internal/loopback"
)

// startTime is the maximum time until the suite is ready once the images exist.
const startTime = time.Minute

// admissionConfig refuses volumes in namespaces that have no quota for them.
const admissionConfig = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - {resource: persistentvolumeclaims, matchContains: [requests.storage]}
`

// containers is a running suite.
type containers struct {
	env        []string
	project    string
	state      string
	published  string // where csr-signer publishes what is revoked
	configDir  string
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
}

// TestCompose starts the suite and runs all tests of its containers.
func TestCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("builds thirteen images and starts sixteen containers")
	}
	if out, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		t.Skipf("needs Docker: no daemon answers: %.100s", out)
	}
	c := start(t)
	t.Run("kubectl", c.testKubectl)
	t.Run("admission configuration", c.testAdmissionConfiguration)
	t.Run("etcd overrides", c.testOverrides)
	t.Run("backup", c.testBackup)
	t.Run("revocations", c.testRevocations)
	t.Run("hardened", c.testHardened)
	t.Run("faults", c.testFaults)
}

// start builds the images and starts the suite, with its own data and identities.
func start(t *testing.T) *containers {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	state := t.TempDir()
	published, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, publishedPort, _ := net.SplitHostPort(published)
	c := &containers{project: "portico-test-" + port, state: state, published: published, configDir: filepath.Join(state, "config"), kubeconfig: filepath.Join(state, "pki", "admin", "kubeconfig")}
	c.env = append(os.Environ(), "COMPOSE_PROJECT_NAME="+c.project, "PORTICO_PORT="+port, "PORTICO_STATE="+state, "PORTICO_CONFIG="+c.configDir, "PORTICO_BACKUPS="+filepath.Join(state, "backups"), "TAG=test", "PORTICO_TAG=test")
	c.env = append(c.env, "PORTICO_ADMISSION_CONFIG=/config/admission.yaml", "PORTICO_REVOCATION_STATUS_PORT="+publishedPort)
	if err := errors.Join(os.Mkdir(c.configDir, 0o755), os.WriteFile(filepath.Join(c.configDir, "admission.yaml"), []byte(admissionConfig), 0o644)); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PORTICO_TEST_IMAGES") == "" { // otherwise they exist, with the tag test
		t.Log("images:\n" + c.run(t, "../images/build"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.run(t, "./compose", "ps"))
			t.Log(c.run(t, "./compose", "logs", "--tail=15"))
		}
		c.run(t, "./compose", "down", "--volumes", "--remove-orphans", "--timeout=5")
	})

	answered := c.firstAnswer(t)
	t.Log(c.run(t, "./up"))
	select {
	case took := <-answered:
		t.Logf("the first answer came after %v", took.Round(100*time.Millisecond))
		if took > startTime {
			t.Errorf("the suite has answered after %v, want %v", took, startTime)
		}
	case <-time.After(startTime):
		t.Fatal("no answer")
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.config.QPS, c.config.Timeout = -1, 0
	c.client = kubernetes.NewForConfigOrDie(c.config)
	return c
}

// firstAnswer polls the readiness of the suite and returns the time until it is ready.
func (c *containers) firstAnswer(t *testing.T) <-chan time.Duration {
	t.Helper()
	began, answered, ticks := time.Now(), make(chan time.Duration, 1), time.NewTicker(100*time.Millisecond)
	ready := func() bool {
		config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
		if err != nil {
			return false // not created yet
		}
		config.Timeout = time.Second
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error() == nil
	}
	go func() {
		defer ticks.Stop()
		for !ready() && t.Context().Err() == nil {
			<-ticks.C
		}
		answered <- time.Since(began)
	}()
	return answered
}

// run runs a program in this folder and returns its output.
func (c *containers) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Env = c.env
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// of returns the ids of the running containers of a service.
func (c *containers) of(t *testing.T, service string) []string {
	t.Helper()
	return strings.Fields(c.run(t, "docker", "ps", "-q", "--no-trunc",
		"--filter", "label=com.docker.compose.project="+c.project, "--filter", "label=com.docker.compose.service="+service))
}

// testKubectl uses the printed kubeconfig with the standard client.
func (c *containers) testKubectl(t *testing.T) {
	program, err := filepath.Abs("../../bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Dir, build.Env = "../../test/kubectl", append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, step := range []struct{ line, want string }{
		{"get namespaces", "kube-system"},
		{"create configmap first --from-literal=a=b", "configmap/first created"},
		{"get configmap first -o jsonpath={.data.a}", "b"},
		{"auth can-i delete nodes", "yes"},
		{"auth can-i delete nodes --as=system:portico:token-cleaner", "no"},
		{"get --raw /readyz", "ok"},
		{"delete configmap first", "deleted"},
	} {
		args := append([]string{"--kubeconfig=" + c.kubeconfig}, strings.Fields(step.line)...)
		out, err := exec.Command(program, args...).CombinedOutput()
		if !strings.Contains(string(out), step.want) {
			t.Errorf("kubectl %s: %v: %s, want %q", step.line, err, out, step.want)
		}
	}
}

// testAdmissionConfiguration creates what the admission configuration refuses.
func (c *containers) testAdmissionConfiguration(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	_, err := c.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "insufficient quota") {
		t.Errorf("a claim without a quota: %v, want a refusal", err)
	}
}

// testOverrides renders the suite with the variable of overrides, as Compose does.
func (c *containers) testOverrides(t *testing.T) {
	const value = "/events#https://events-1:2379;https://events-2:2379"
	with := *c
	with.env = append(slices.Clone(c.env), "PORTICO_ETCD_SERVERS_OVERRIDES="+value)
	if n := strings.Count(with.run(t, "./compose", "config"), "--etcd-servers-overrides="+value); n != 3 {
		t.Errorf("%d services have the overrides, want the store, the watch hub and the backup", n)
	}
}

// testRevocations reads the revocation list from outside of the containers.
func (c *containers) testRevocations(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(c.state, "pki", "csr-signer", "signing-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	ticks, deadline := time.NewTicker(100*time.Millisecond), time.After(startTime)
	defer ticks.Stop()
	for err := readList(t, "http://"+c.published+"/crl", authority); err != nil; err = readList(t, "http://"+c.published+"/crl", authority) {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

// readList returns an error unless a valid revocation list of an authority is at a URL.
func readList(t *testing.T, url string, authority *x509.Certificate) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	list, err := x509.ParseRevocationList(body)
	if err != nil {
		return fmt.Errorf("%s, %q: %w", response.Status, body, err)
	}
	return list.CheckSignatureFrom(authority)
}

// testHardened checks every container: it does not run as root, has a read-only root
// filesystem, no capabilities and resource limits, and mounts only its own identity.
func (c *containers) testHardened(t *testing.T) {
	all := strings.Fields(c.run(t, "docker", "ps", "-q", "--filter", "label=com.docker.compose.project="+c.project))
	if len(all) != 16 {
		t.Errorf("%d containers run, want 16", len(all))
	}
	var found []struct {
		Name   string
		Config struct{ User string }
		State  struct{ Status string }
		Mounts []struct {
			Source, Destination string
			RW                  bool
		}
		HostConfig struct {
			ReadonlyRootfs bool
			CapDrop        []string
			Memory         int64
			NanoCpus       int64
			PidsLimit      int64
			SecurityOpt    []string
		}
	}
	if err := json.Unmarshal([]byte(c.run(t, "docker", append([]string{"inspect"}, all...)...)), &found); err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		h := one.HostConfig
		if one.Config.User == "" || strings.HasPrefix(one.Config.User, "0") || !h.ReadonlyRootfs || len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL" ||
			h.Memory == 0 || h.NanoCpus == 0 || h.PidsLimit == 0 || len(h.SecurityOpt) == 0 {
			t.Errorf("%s: user %q, %+v", one.Name, one.Config.User, h)
		}
		identities := 0
		for _, m := range one.Mounts {
			switch {
			case m.Destination == "/pki" && !m.RW && strings.Contains(one.Name, filepath.Base(m.Source)):
				identities++
			case m.Destination == "/config" && !m.RW && m.Source == c.configDir:
			case m.Destination == "/data" && strings.Contains(one.Name, "etcd-"):
			default:
				t.Errorf("%s has mounted %+v", one.Name, m)
			}
		}
		if identities != 1 {
			t.Errorf("%s has %d identities", one.Name, identities)
		}
	}
}
