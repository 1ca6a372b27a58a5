package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/build"
)

// suite is a suite with a few flags, which is not started.
func suite([]string) run.App {
	return run.App{Name: "portico", Services: []run.Service{{
		Name: "door",
		Flags: func(fs *pflag.FlagSet) {
			fs.Int("secure-port", 6443, "port")
			fs.String("data-dir", "./portico-data", "folder")
			fs.StringSlice("tls-cipher-suites", nil, "suites")
		},
		Start: func(context.Context, *run.Node) error { return nil },
	}}}
}

func try(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = Main(t.Context(), suite, args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// TestCommands: each command says what is wrong with its arguments, with status 2.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		out    string // a part of the output
		errs   string // a part of the errors
	}{
		{"help", 0, "Work with a running suite:", ""},
		{"help who-can", 0, "--kubeconfig", ""},
		{"docter", 2, "", `portico: unknown command "docter"; did you mean doctor? (see portico --help)`},
		{"nothing-like-it", 2, "", `portico: unknown command "nothing-like-it" (see portico --help)`},
		{"who-can", 2, "", "accepts 2 arg(s), received 0"},
		{"who-can get pods --nothing", 2, "", "unknown flag: --nothing"},
		{"top -o xml", 2, "", `--output: unknown format "xml": use table, json or yaml`},
		{"who-can get pods --kubeconfig=/nowhere", 1, "", "/nowhere"},
		{"certs list extra", 2, "", `unknown command "extra"`},
		{"pki", 2, "", "missing command"},
		{"audit verify", 2, "", ""},
		{"version extra", 2, "", ""},
		{"version -o xml", 2, "", `unknown format "xml"`},
		{"version", 0, "serves the API of Kubernetes 1.36 and 1.21", ""},
		{"version -o yaml", 0, "kubernetes:\n", ""},
		{"config --secure-prot=1", 2, "", "unknown flag: --secure-prot; did you mean --secure-port?"},
		{"config --secure-port=abc", 2, "", `--secure-port: "abc" is not a number`},
		{"config --print --secure-port=7443", 0, "secure-port: 7443\n", ""},
		{"config --all", 0, "data-dir: ./portico-data\n", ""},
		{"completion bash", 0, "__start_portico", ""},
		{"__complete serve --sec", 0, "--secure-port", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, out, errs := try(t, strings.Fields(c.args)...)
			if status != c.status || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
				t.Errorf("status %d, want %d\n%s\n%s", status, c.status, out, errs)
			}
			if strings.Contains(out+errs, "strconv") {
				t.Error("names a package of Go: " + out + errs)
			}
		})
	}
}

// TestVersion: the version names what the program was built with.
func TestVersion(t *testing.T) {
	_, out, _ := try(t, "version", "-o", "json")
	var v build.Version
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Go == "" || v.Version == "" || len(v.Kubernetes) != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestConfigurationRoundTrip: what config prints is a configuration file with the same settings.
func TestConfigurationRoundTrip(t *testing.T) {
	_, printed, errs := try(t, "config", "--secure-port=7443", "--tls-cipher-suites=a,b", "--feature-gates=CBOR=true")
	file := filepath.Join(t.TempDir(), "portico.yaml")
	if err := os.WriteFile(file, []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, again, moreErrs := try(t, "config", "--config="+file)
	if again != printed || !strings.Contains(printed, "tls-cipher-suites:\n- a\n- b\n") {
		t.Errorf("printed\n%s%s\nthen\n%s%s", printed, errs, again, moreErrs)
	}
}
