package test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var checkLine = regexp.MustCompile(`(?m)^\[[+-]\](\S+) `)

// freeAddress returns an address of this machine that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestFrontDoorsAreReadyAlone starts a front door whose services are all away. The readiness
// probe of the chart must exclude exactly the health checks of these, by the names that the
// program gives them, and must fail as long as the front door has not started.
func TestFrontDoorsAreReadyAlone(t *testing.T) {
	identities := filepath.Join(t.TempDir(), "pki")
	if out, err := exec.Command(program(t, "portico"), "pki", "init", "--dir="+identities).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	status := freeAddress(t)
	args := []string{"--vocabulary=k8s", "--status-address=" + status, "--bind-address=127.0.0.1", "--secure-port=0", "--log-level=warn", "--nats-url=tls://" + freeAddress(t)}
	for flag, file := range map[string]string{"peer-ca-file": "peer-ca.crt", "peer-cert-file": "peer.crt", "peer-key-file": "peer.key",
		"nats-ca-file": "nats-ca.crt", "nats-cert-file": "nats.crt", "nats-key-file": "nats.key", "nats-nkey-seed-file": "nats.seed"} {
		args = append(args, "--"+flag+"="+filepath.Join(identities, "frontdoor", file))
	}
	for _, service := range []string{"store", "watch-hub", "authn", "authz", "admission"} {
		args = append(args, "--"+service+"-address="+freeAddress(t))
	}
	process := exec.Command(program(t, "frontdoor"), args...)
	var output bytes.Buffer
	process.Stdout, process.Stderr = &output, &output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if t.Failed() {
			t.Logf("the front door said: %s", output.String())
		}
	}()
	ask := func(path string) (int, string, error) {
		response, err := http.Get("http://" + status + path)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	var known []string
	eventually(t, "the front door lists its checks", func() error {
		_, body, err := ask("/readyz?verbose")
		if err != nil {
			return err
		}
		known = nil
		for _, match := range checkLine.FindAllStringSubmatch(body, -1) {
			known = append(known, match[1])
		}
		if !slices.Contains(known, "nats") || !slices.Contains(known, "storage") {
			return fmt.Errorf("it lists %q", known)
		}
		return nil
	})
	for _, w := range workloads(render(t, "values/default.yaml")) {
		if w.component != "frontdoor" {
			continue
		}
		probe := w.pod.Containers[0].ReadinessProbe.HTTPGet.Path
		u, err := url.Parse(probe)
		if err != nil || u.Path != "/readyz" {
			t.Fatalf("the probe asks %s: %v", probe, err)
		}
		excluded := u.Query()["exclude"]
		own := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return slices.Contains(excluded, name) })
		slices.Sort(own)
		if want := []string{"certificates", "ping", "serving", "shutdown"}; !slices.Equal(own, want) {
			t.Errorf("of the checks %q, %s leaves %q, want %q", known, probe, own, want)
		}
		code, body, err := ask(probe + "&verbose")
		if err != nil || code != http.StatusInternalServerError || !strings.Contains(body, "[-]serving failed") || strings.Contains(body, "no matches") || strings.Count(body, "[-]") != 1 {
			t.Errorf("before it has started it responds %d: %s, %v", code, body, err)
		}
		return
	}
	t.Fatal("there is no front door")
}
