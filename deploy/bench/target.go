package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	adminToken = "bench-admin"
	// patience bounds the start of a target.
	patience = time.Minute
)

// target is a server that is measured.
type target struct {
	name, url, token string
	processes        []*exec.Cmd
	pids             []int
	client           *http.Client
}

// starters returns what starts the targets, in the order in which they are measured.
func starters(s *settings, work string) (all []func(context.Context) (*target, error)) {
	if s.portico != "" {
		all = append(all, func(ctx context.Context) (*target, error) { return startPortico(ctx, s.portico, work) })
	}
	if s.peer != "" {
		all = append(all, func(ctx context.Context) (*target, error) { return startPeer(ctx, s.peer, work) })
	}
	if s.url != "" {
		all = append(all, func(ctx context.Context) (*target, error) {
			t := newTarget("url", s.url)
			t.token = s.token
			if s.pid > 0 {
				t.pids = []int{s.pid}
			}
			return t, t.await(ctx)
		})
	}
	return all
}

func newTarget(name, url string) *target {
	return &target{name: name, url: strings.TrimSuffix(url, "/"), token: adminToken, client: newClient()}
}

// newClient makes one connection's worth of client. Certificates are not looked
// at: what is measured is on this machine and its own.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100, DisableCompression: true,
	}}
}

func startPortico(ctx context.Context, program, work string) (*target, error) {
	address, tokens, err := prepare(work, "portico")
	if err != nil {
		return nil, err
	}
	t := newTarget("portico", "https://"+address)
	host, port, _ := net.SplitHostPort(address)
	if err := t.spawn(work, program, "--vocabulary=k8s", "--data-dir="+filepath.Join(work, "portico"), "--bind-address="+host, "--secure-port="+port,
		"--token-auth-file="+tokens, "--disable-admission-plugins=ServiceAccount"); err != nil {
		return t, err
	}
	return t, t.await(ctx)
}

// startPeer starts the reference server on an etcd of its own, which counts as
// a part of it.
func startPeer(ctx context.Context, programs, work string) (*target, error) {
	address, tokens, err := prepare(work, "peer")
	if err != nil {
		return nil, err
	}
	etcd, err := freeAddress()
	if err != nil {
		return nil, err
	}
	key, err := accountKey(work)
	if err != nil {
		return nil, err
	}
	t := newTarget("peer", "https://"+address)
	if err := t.spawn(work, filepath.Join(programs, "etcd"), etcd, filepath.Join(work, "peer", "etcd")); err != nil {
		return t, err
	}
	host, port, _ := net.SplitHostPort(address)
	if err := t.spawn(work, filepath.Join(programs, "apiserver"), "--etcd-servers=http://"+etcd, "--cert-dir="+filepath.Join(work, "peer"),
		"--bind-address="+host, "--secure-port="+port, "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://peer",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key); err != nil {
		return t, err
	}
	return t, t.await(ctx)
}

// prepare makes a target's folder with a token file, and finds a free address.
func prepare(work, name string) (address, tokens string, err error) {
	dir := filepath.Join(work, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	if address, err = freeAddress(); err != nil {
		return "", "", err
	}
	tokens = filepath.Join(work, name+"-tokens.csv")
	return address, tokens, os.WriteFile(tokens, []byte(adminToken+",bench,bench,\"system:masters\"\n"), 0o600)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// accountKey writes the key that the reference server wants for its tokens.
func accountKey(work string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "accounts.key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600)
}

func (t *target) spawn(work, program string, args ...string) error {
	log, err := os.Create(filepath.Join(work, t.name+"-"+filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	t.processes = append(t.processes, command)
	t.pids = append(t.pids, command.Process.Pid)
	return nil
}

func (t *target) stop() {
	for i := len(t.processes) - 1; i >= 0; i-- {
		_ = t.processes[i].Process.Signal(syscall.SIGTERM)
		_ = t.processes[i].Wait()
	}
}

// await waits until the target is ready and the namespace default is there.
func (t *target) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		_, ready := t.do(ctx, http.MethodGet, "/readyz", nil)
		_, found := t.do(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
		if ready == nil && found == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready within %v: %v, %v", t.name, patience, ready, found)
		case <-ticks.C:
		}
	}
}

// do sends one request and returns the body of a 2xx answer.
func (t *target) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	response, err := t.send(ctx, t.client, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return answer, err
}

// send sends one request with a client; answers other than 2xx are errors.
func (t *target) send(ctx context.Context, client *http.Client, method, path string, body []byte) (*http.Response, error) {
	return t.sendAs(ctx, client, request{method, path, "application/json", body})
}

// request is what is sent.
type request struct {
	method, path, mediaType string
	body                    []byte
}

func (t *target) sendAs(ctx context.Context, client *http.Client, r request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.method, t.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	request.Header.Set("Content-Type", r.mediaType)
	response, err := client.Do(request)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
	return nil, fmt.Errorf("%s %s: %d %s", r.method, r.path, response.StatusCode, text)
}

// drain reads an answer that nobody looks at.
func drain(response *http.Response) error {
	defer response.Body.Close()
	_, err := io.Copy(io.Discard, response.Body)
	return err
}
