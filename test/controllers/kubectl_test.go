package controllers

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// programs are what the functions need, with the packages of Debian that have them.
var programs = map[string]string{"bash": "bash", "jq": "jq", "curl": "curl", "openssl": "openssl", "tput": "ncurses-bin", "diff": "diffutils", "script": "bsdutils", "file": "file", "awk": "mawk"}

// TestKubectl runs the tests of kubectl of Kubernetes, the functions in its test/cmd, with the
// controller manager. As in Kubernetes, there is a node but nothing runs on it.
func TestKubectl(t *testing.T) {
	skipUnlessAsked(t)
	for name, pack := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v (advice: apt-get install %s)", err, pack)
		}
	}
	sources := copySources(t)
	s := &site{dir: t.TempDir()}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	// The flags are those with which test-cmd.sh of Kubernetes starts the original.
	s.run(t, "portico", "--data-dir="+s.dir, "--vocabulary=k8s", "--emulated-version=1.36", "--bind-address=127.0.0.1", "--secure-port="+freePort(t), "--log-level=warn",
		"--token-auth-file="+filepath.Join(sources, "hack/testdata/auth-tokens.csv"), "--client-ca-file="+filepath.Join(sources, "hack/testdata/ca/ca.crt"),
		"--authorization-mode=RBAC,AlwaysAllow", "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection")
	s.connect(t)
	s.run(t, "controllers/kubernetes", "kube-controller-manager", "--kubeconfig="+s.issue(t, "system:kube-controller-manager"),
		"--use-service-account-credentials", "--secure-port=0", "--controllers=*,-"+strings.Join(off, ",-"))
	// The functions expect no requests for certificates.
	if err := s.client.CertificatesV1().CertificateSigningRequests().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	// The annotation makes the managed fields of the node appear.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "127.0.0.1", Annotations: map[string]string{"save-managers": "true"}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}
	if _, err := s.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	report(t, s.runFunctions(t, sources))
}

// published is where one function reads files of the folder that is copied.
const published = "https://raw.githubusercontent.com/kubernetes/kubernetes/master/"

// copySources copies the parts of Kubernetes' sources that the functions use, and makes
// scripts executable, because a module has no modes of files. Nothing is read from the Internet.
// It returns the folder of the copy.
func copySources(t *testing.T) string {
	t.Helper()
	module, copied := kubernetesModule(t), t.TempDir()
	for _, part := range []string{"hack/lib", "hack/testdata", "test/cmd", "test/e2e/testing-manifests", "test/fixtures", "third_party/forked/shell2junit"} {
		err := filepath.WalkDir(filepath.Join(module, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(module, path)
			if err != nil {
				return err
			}
			to := filepath.Join(copied, inside)
			if d.IsDir() {
				return os.MkdirAll(to, 0o755)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			mode := fs.FileMode(0o644)
			if bytes.HasPrefix(content, []byte("#!")) {
				mode = 0o755
			}
			return os.WriteFile(to, bytes.ReplaceAll(content, []byte(published), nil), mode)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(copied, "_output", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, built := range map[string]string{"kubectl": "controllers/kubectl", "kubectl-convert": "controllers/kubectl-convert"} {
		if err := os.Symlink(program(t, built), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// runFunctions runs the functions, and returns the outcome of each.
func (s *site) runFunctions(t *testing.T, sources string) []check {
	t.Helper()
	script, err := filepath.Abs("kubectl/run")
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	certificate, err := os.ReadFile(filepath.Join(s.dir, "pki", "serving.crt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(temporary, "apiserver.crt"), certificate, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(*results + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := exec.CommandContext(t.Context(), script)
	command.Dir = sources
	command.Stdout, command.Stderr = log, log
	// Portico's version has a suffix, so that kubectl must accept another version than its own.
	command.Env = append(os.Environ(), "TERM=xterm", "TMPDIR="+temporary, "KUBE_JUNIT_REPORT_DIR="+filepath.Join(temporary, "reports"),
		"SECURE_API_PORT="+port(t, s.config.Host), "ALLOW_SKEW=true", "WHAT="+*only)
	failure := command.Run() // is that of any function
	content, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	checks := outcomes(string(content))
	if len(checks) == 0 || checks[len(checks)-1].ID != lastFunction && *only == "" {
		t.Errorf("the functions ended early: %v: %s", failure, lastLines(string(content)))
	}
	return checks
}

// port returns the port of a URL.
func port(t *testing.T, host string) string {
	t.Helper()
	address, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	return address.Port()
}

// lastFunction is what test/cmd runs last.
const lastFunction = "run_kubectl_scale_tests"

// function matches where a function begins and ends in the log, perhaps after colours.
var function = regexp.MustCompile(`(?m)\+\+\+ Running case: test-cmd\.(\w+) $|\+\+\+ exit code: (\d+)$`)

// outcomes returns the outcomes of the functions of a log, in their order.
func outcomes(log string) (checks []check) {
	name, begin := "", 0
	for _, at := range function.FindAllStringSubmatchIndex(log, -1) {
		switch {
		case at[2] >= 0:
			name, begin = log[at[2]:at[3]], at[1]
		case name == "" || name == "record_command_canary": // this one has to fail
			name = ""
		case log[at[4]:at[5]] == "0":
			checks, name = append(checks, check{ID: name, Outcome: passed}), ""
		default:
			checks, name = append(checks, check{ID: name, Outcome: failed, Why: lastLines(log[begin:at[0]])}), ""
		}
	}
	return checks
}

// kubernetesModule returns the folder of the sources of Kubernetes.
func kubernetesModule(t *testing.T) string {
	t.Helper()
	command := exec.Command("go", "-C", "kubernetes", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// lastLines returns the last lines of a text.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
