package testassets

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/portico-platform/portico/internal/allinone"
)

// TestMain makes the test binary one of the programs when a link with its name is started.
func TestMain(m *testing.M) {
	Run(os.Args)
	os.Exit(m.Run())
}

// assets returns a folder with the programs.
func assets(t testing.TB) string {
	t.Helper()
	var out, diagnostics bytes.Buffer
	dir := filepath.Join(t.TempDir(), "it's here")
	for range 2 { // the second time nothing changes
		out.Reset()
		if code := Main([]string{dir}, &out, &diagnostics); code != 0 {
			t.Fatal(code, diagnostics.String())
		}
	}
	if want := "export KUBEBUILDER_ASSETS='" + strings.ReplaceAll(dir, "'", `'\''`) + "'\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	return dir
}

// TestEnvtest: envtest of controller-runtime starts the programs, and a restarted API server
// finds its data in etcd.
func TestEnvtest(t *testing.T) {
	t.Parallel()
	e := &envtest.Environment{BinaryAssetsDirectory: assets(t)}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	server := e.ControlPlane.APIServer
	certificates := server.CertDir
	kept := t.TempDir()
	if err := os.CopyFS(filepath.Join(kept, "certificates"), os.DirFS(certificates)); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server.CertDir = filepath.Join(kept, "certificates")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Error(err)
	}
}

// TestSampleOperator: the suites of an operator that is written for envtest pass unchanged.
func TestSampleOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests of the operator")
	}
	t.Parallel()
	suites := buildSample(t)
	for _, suite := range []string{"controller", "webhook"} {
		if out, err := runSample(suites, suite, assets(t)); err != nil {
			t.Errorf("%s: %v\n%s", suite, err, out)
		}
	}
}

// sample is the folder of the suites of the sample operator.
var sample = filepath.Join("..", "..", "testing", "cronjob", "internal")

// buildSample builds the suites into a folder.
func buildSample(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", dir+"/", "./...")
	command.Dir, command.Env = sample, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath") // as the programs are compiled
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func runSample(suites, name, assets string) ([]byte, error) {
	command := exec.Command(filepath.Join(suites, name+".test"))
	command.Dir, command.Env = filepath.Join(sample, name), append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	return command.CombinedOutput()
}

// TestWrongFlags: the program names the flag.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(filepath.Join(assets(t), apiServer), "--no-such-flag=1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "kube-apiserver: unknown flag: --no-such-flag") {
		t.Errorf("%v %s", err, out)
	}
}

func TestTranslation(t *testing.T) {
	for _, c := range []struct{ given, want []string }{
		{[]string{"--cert-dir=/c", "--secure-port=1"}, []string{"--tls-cert-file=/c/apiserver.crt", "--tls-private-key-file=/c/apiserver.key", "--secure-port=1"}},
		{[]string{"--cert-dir", "/c", "--tls-cert-file=/x"}, []string{"--tls-cert-file=/x"}},
		{[]string{"--allow-privileged", "--v", "4", "--secure-port", "1"}, []string{"--secure-port", "1"}},
		{[]string{"--insecure-port=0", "-v=2", "v"}, []string{"v"}},
	} {
		if got := apiServerArgs(c.given)[5:]; !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.given, got, c.want)
		}
	}
}

// TestIgnoredFlags: what is ignored is no flag of the services.
func TestIgnoredFlags(t *testing.T) {
	for _, s := range allinone.Services([]string{"--etcd-servers"}) {
		if s.Flags == nil {
			continue
		}
		flags := pflag.NewFlagSet(s.Name, pflag.ContinueOnError)
		s.Flags(flags)
		for _, name := range ignored() {
			if flags.Lookup(name) != nil {
				t.Errorf("--%s of %s is ignored", name, s.Name)
			}
		}
	}
}

func TestWrongCalls(t *testing.T) {
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, etcd), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "one folder is required"},
		{[]string{"--what"}, 2, "one folder is required"},
		{[]string{taken}, 1, "etcd exists"},
	} {
		var out, diagnostics bytes.Buffer
		if code := Main(c.args, &out, &diagnostics); code != c.code || !strings.Contains(diagnostics.String(), c.says) || out.Len() > 0 {
			t.Errorf("%q: %d %s %s", c.args, code, &out, &diagnostics)
		}
	}
}
