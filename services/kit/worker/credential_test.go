package worker

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestCredentialPlugin: a plugin of the specification's group is run once, with the cluster
// info, and again when its token is rejected.
func TestCredentialPlugin(t *testing.T) {
	dir := t.TempDir()
	var good string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+good {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	ask := func(script string) func() (int, error) {
		t.Helper()
		file := filepath.Join(dir, "plugin")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		config := api.NewConfig()
		config.Clusters["c"] = &api.Cluster{Server: server.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
		config.AuthInfos["u"] = &api.AuthInfo{Exec: &api.ExecConfig{APIVersion: credentialGroup + "/v1beta1", Command: file, ProvideClusterInfo: true}}
		config.Contexts["lifecycle"] = &api.Context{Cluster: "c", AuthInfo: "u"}
		path := filepath.Join(dir, "kubeconfig")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		read, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
		if err != nil {
			t.Fatal(err)
		}
		made, err := configFor(read, "lifecycle")
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(made)
		if err != nil {
			t.Fatal(err)
		}
		return func() (int, error) {
			response, err := client.Get(made.Host)
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			return response.StatusCode, nil
		}
	}
	answer := func(status string) string {
		return fmt.Sprintf(`echo "$KUBERNETES_EXEC_INFO" >> %s/asked; echo '{"apiVersion":"%s/v1beta1","kind":"ExecCredential","status":%s}'`, dir, credentialGroup, status)
	}
	good = "first"
	get := ask(`n=$(cat ` + dir + `/asked 2>/dev/null | wc -l); t=first; [ $n -gt 0 ] && t=second; ` + strings.ReplaceAll(answer(`{"token":"TOKEN"}`), `TOKEN`, `'$t'`))
	for i, want := range []int{200, 200, 401, 200} {
		if i == 2 {
			good = "second"
		}
		if got, err := get(); err != nil || got != want {
			t.Fatalf("request %d: %d, %v; want %d", i, got, err, want)
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "asked"))
	if lines := strings.Split(strings.TrimSpace(string(calls)), "\n"); err != nil || len(lines) != 2 || !strings.Contains(lines[0], `"server":"`+server.URL) ||
		!strings.Contains(lines[0], `"apiVersion":"client.authentication.platform.io/v1beta1"`) {
		t.Errorf("the plugin was called with %q, %v", calls, err)
	}
	for what, status := range map[string]string{"nothing": `{}`, "half a pair": `{"clientKeyData":"x"}`, "no pair": `{"clientKeyData":"x","clientCertificateData":"y"}`} {
		if _, err := ask(answer(status))(); err == nil || !strings.Contains(err.Error(), "credential plugin") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ask(`echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"x"}}'`)(); err == nil {
		t.Error("a credential of another API group was accepted")
	}
}
