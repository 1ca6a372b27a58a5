package tokencleaner_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
	tokencleaner "github.com/portico-platform/portico/token-cleaner"
)

// TestStart checks that the worker needs only a kubeconfig, even if no server responds.
func TestStart(t *testing.T) {
	app := run.App{Name: "test", Services: []run.Service{tokencleaner.Service()}}
	if _, err := run.Start(t.Context(), app, []string{"--log-level=error"}); !errors.Is(err, run.ErrUsage) {
		t.Errorf("without a kubeconfig: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, controllers := range []string{"*", "*,tokencleaner,bootstrapsigner"} {
		running, err := run.Start(t.Context(), app, []string{"--log-level=error", "--kubeconfig=" + path, "--controllers=" + controllers})
		if err != nil {
			t.Fatal(err)
		}
		running.Stop()
	}
}
