package worker

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-platform/portico/services/kit/run/peertls"
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

// TestCredentialCertificates: a changed certificate is used at once, although connections
// with the former one are open. The command is relative to the configuration, the authority
// may be in a file, and a missing plugin is explained.
func TestCredentialCertificates(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		files, err := authority.Issue(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		status := map[string]any{}
		for field, path := range map[string]string{"clientCertificateData": files.Cert, "clientKeyData": files.Key} {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			status[field] = string(content)
		}
		raw, err := json.Marshal(map[string]any{"apiVersion": credentialGroup + "/v1beta1", "kind": "ExecCredential", "status": status})
		if err != nil {
			t.Fatal(err)
		}
		write(name+".json", string(raw))
	}
	good := "first"
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peers := r.TLS.PeerCertificates; len(peers) == 0 || !slices.Contains(peers[0].DNSNames, good) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	server.TLS, server.EnableHTTP2 = &tls.Config{ClientAuth: tls.RequestClientCert}, true
	server.StartTLS()
	defer server.Close()
	write("server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write("plugin", "#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" > "+dir+"/info; cat "+dir+"/$1.json")
	connect := func(command, arguments string) *http.Client {
		t.Helper()
		write("kubeconfig", `{"apiVersion":"v1","kind":"Config","current-context":"w","contexts":[{"name":"w","context":{"cluster":"c","user":"u"}}],
			"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`","certificate-authority":"server.crt"}}],
			"users":[{"name":"u","user":{"exec":{"apiVersion":"`+credentialGroup+`/v1beta1","command":"`+command+`","args":[`+arguments+`],"installHint":"ask the operators","provideClusterInfo":true}}}]}`)
		read, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(dir, "kubeconfig")}).Load()
		if err != nil {
			t.Fatal(err)
		}
		config, err := configFor(read, "w")
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	client := connect("./plugin", `"first"`)
	for i, want := range []int{200, 200, 401, 200, 200} {
		if i == 2 {
			good = "second"
			write("first.json", read(t, dir, "second.json"))
		}
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if response.Body.Close(); response.StatusCode != want {
			t.Fatalf("request %d: %d, want %d", i, response.StatusCode, want)
		}
	}
	if info := read(t, dir, "info"); !strings.Contains(info, base64.StdEncoding.EncodeToString([]byte(read(t, dir, "server.crt")))) {
		t.Errorf("the plugin is told %s", info)
	}
	if _, err := connect("./missing", "").Get(server.URL); err == nil || !strings.Contains(err.Error(), "ask the operators") { //nolint:bodyclose // there is no response
		t.Errorf("a missing plugin: %v", err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
