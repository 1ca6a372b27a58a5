package csrsigner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
)

// TestStart checks that the worker starts with a kubeconfig, even if no server responds,
// and that invalid flags are usage errors.
func TestStart(t *testing.T) {
	app := run.App{Name: "test", Services: []run.Service{Service()}}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := authorityFiles(t)
	for _, c := range []struct {
		args []string
		want error
	}{
		{nil, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--cluster-signing-duration=0"}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--cluster-signing-key-file=" + keyFile}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--cluster-signing-cert-file=" + keyFile, "--cluster-signing-key-file=" + certFile}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--max-certificates-per-requester=-1", "--cluster-signing-cert-file=" + certFile, "--cluster-signing-key-file=" + keyFile}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--revocation-status-validity=1m"}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--revocation-status-url=http://pki.example.com"}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--revocation-status-address=127.0.0.1:0"}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--revocation-status-address=127.0.0.1:0", "--revocation-status-url=ldap://pki.example.com"}, run.ErrUsage},
		{[]string{"--kubeconfig=" + path, "--controllers=-csrsigning,-csrcleaner"}, nil},
		{[]string{"--kubeconfig=" + path, "--cluster-signing-cert-file=" + certFile, "--cluster-signing-key-file=" + keyFile,
			"--revocation-status-address=127.0.0.1:0", "--revocation-status-url=http://pki.example.com/"}, nil},
	} {
		running, err := run.Start(t.Context(), app, append([]string{"--log-level=error"}, c.args...))
		if !errors.Is(err, c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
		if running != nil {
			running.Stop()
		}
	}
}
