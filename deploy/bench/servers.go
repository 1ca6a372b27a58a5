package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/portico-platform/portico/deploy/internal/loopback"
)

// withoutWorkers starts Portico as the reference server is: it has its controllers
// in another program, which is not run here.
const withoutWorkers = "--controllers=-*"

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
			t.token, t.pids = s.token, s.pids
			return t, t.await(ctx)
		})
	}
	return all
}

func startPortico(ctx context.Context, program, work string) (*target, error) {
	address, tokens, err := home(work, "portico")
	if err != nil {
		return nil, err
	}
	t := newTarget("portico", "https://"+address)
	host, port, _ := net.SplitHostPort(address)
	if err := t.spawn(work, program, "--vocabulary=k8s", "--data-dir="+filepath.Join(work, "portico"), "--bind-address="+host, "--secure-port="+port,
		"--token-auth-file="+tokens, "--disable-admission-plugins=ServiceAccount", withoutWorkers); err != nil {
		return t, err
	}
	return t, t.await(ctx)
}

// startPeer starts the reference server on an etcd of its own, which counts as
// a part of it.
func startPeer(ctx context.Context, programs, work string) (*target, error) {
	address, tokens, err := home(work, "peer")
	if err != nil {
		return nil, err
	}
	etcd, err := loopback.FreeAddress()
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
	if err := t.await(ctx); err != nil {
		return t, err
	}
	t.version = cmp.Or(moduleVersion(filepath.Join(programs, "apiserver"), "/kubernetes"), t.version)
	return t, nil
}

// moduleVersion finds the version of a module in a program: one built from the
// module proxy was not told its own.
func moduleVersion(program, module string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return ""
	}
	for _, m := range info.Deps {
		if strings.HasSuffix(m.Path, module) {
			return m.Version
		}
	}
	return ""
}

// home makes a target's folder with a token file, and finds a free address.
func home(work, name string) (address, tokens string, err error) {
	dir := filepath.Join(work, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	if address, err = loopback.FreeAddress(); err != nil {
		return "", "", err
	}
	tokens = filepath.Join(work, name+"-tokens.csv")
	return address, tokens, os.WriteFile(tokens, []byte(adminToken+",bench,bench,\"system:masters\"\n"), 0o600)
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
