// Package kmsplugin is a KMS plugin for tests, of version 2 of the Kubernetes KMS API. It
// serves on a unix socket and encrypts with AES keys in memory.
package kmsplugin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"
)

const annotation = "generation.kms.portico.example"

// Plugin is a running plugin.
type Plugin struct {
	api.UnimplementedKeyManagementServiceServer
	socket string

	mu       sync.Mutex
	server   *grpc.Server
	keys     map[string]cipher.AEAD
	current  string
	failure  error
	decrypts int
	faults   Faults
}

// Faults change the answers of a plugin. Each may be nil.
type Faults struct {
	Status  func(*api.StatusResponse)
	Encrypt func(*api.EncryptResponse)
	Decrypt func(*api.DecryptResponse)
}

// Start starts a plugin with one key. It stops with the test.
func Start(t testing.TB) *Plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &Plugin{socket: filepath.Join(dir, "kms.sock"), keys: map[string]cipher.AEAD{}}
	p.Rotate(t)
	p.Serve(t)
	t.Cleanup(p.Stop)
	return p
}

// Endpoint returns the endpoint for an EncryptionConfiguration.
func (p *Plugin) Endpoint() string { return "unix://" + p.socket }

// Serve listens again after Stop. It keeps its keys.
func (p *Plugin) Serve(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterKeyManagementServiceServer(server, p)
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Stop closes the socket.
func (p *Plugin) Stop() {
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	server.Stop()
}

// Rotate makes a new key the current one, and returns its key_id. Older keys decrypt.
func (p *Plugin) Rotate(t testing.TB) string {
	t.Helper()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = fmt.Sprintf("key-%d", len(p.keys)+1)
	p.keys[p.current] = aead
	return p.current
}

// Fail makes all calls fail; nil ends it.
func (p *Plugin) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// Misbehave changes all further answers.
func (p *Plugin) Misbehave(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Decrypts returns the number of calls of Decrypt.
func (p *Plugin) Decrypts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decrypts
}

// Status implements the KMS API.
func (p *Plugin) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := &api.StatusResponse{Version: "v2", Healthz: "ok", KeyId: p.current}
	if p.faults.Status != nil {
		p.faults.Status(answer)
	}
	return answer, p.failure
}

// Encrypt implements the KMS API.
func (p *Plugin) Encrypt(_ context.Context, r *api.EncryptRequest) (*api.EncryptResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := &api.EncryptResponse{
		KeyId: p.current, Ciphertext: p.keys[p.current].Seal(nil, nil, r.Plaintext, []byte(p.current)),
		Annotations: map[string][]byte{annotation: []byte(p.current)},
	}
	if p.faults.Encrypt != nil {
		p.faults.Encrypt(answer)
	}
	return answer, p.failure
}

// Decrypt implements the KMS API.
func (p *Plugin) Decrypt(_ context.Context, r *api.DecryptRequest) (*api.DecryptResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decrypts++
	if p.failure != nil {
		return nil, p.failure
	}
	key := p.keys[r.KeyId]
	if key == nil || string(r.Annotations[annotation]) != r.KeyId {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	plain, err := key.Open(nil, nil, r.Ciphertext, []byte(r.KeyId))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "not encrypted with this key")
	}
	answer := &api.DecryptResponse{Plaintext: plain}
	if p.faults.Decrypt != nil {
		p.faults.Decrypt(answer)
	}
	return answer, nil
}
