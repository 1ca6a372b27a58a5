// Package console tests the web console in a real browser, and makes the screenshots of
// docs/console.
package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// portico is a running all-in-one.
type portico struct {
	url, token string
	client     *http.Client
}

// start runs bin/portico until the test ends.
func start(t *testing.T, flags ...string) *portico {
	t.Helper()
	program, err := filepath.Abs("../../bin/portico")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v (make build makes it)", err)
	}
	dir := t.TempDir()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.Command(program, append([]string{"--data-dir", dir, "--vocabulary", "k8s", "--secure-port", port}, flags...)...)
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = command.Process.Kill()
			t.Error("portico does not end")
		}
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	})
	p := &portico{url: "https://" + address, client: &http.Client{
		Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // its certificate is new
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if token, err := os.ReadFile(filepath.Join(dir, "admin-token")); err == nil {
			p.token = strings.TrimSpace(string(token))
			if _, err := p.do(t.Context(), http.MethodGet, "/readyz", nil); err == nil {
				return p
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("portico does not start")
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// do sends a request as the administrator.
func (p *portico) do(ctx context.Context, method, path string, object any) ([]byte, error) {
	var body io.Reader
	if object != nil {
		encoded, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s", method, path, answer)
	}
	return answer, nil
}

// must sends a request as the administrator, which has to succeed.
func (p *portico) must(t *testing.T, method, path string, object any) []byte {
	t.Helper()
	answer, err := p.do(t.Context(), method, path, object)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

type object = map[string]any

func configMap(name, value string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"key": value}}
}
