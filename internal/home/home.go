// Package home creates the data folder of the all-in-one at its first start: a certificate
// authority, a serving certificate, a certificate authority for certificate signing
// requests, a front-proxy authority with the client certificate by which extensions of the
// API know the front door, the same for admission to admission services and webhooks, tokens, and client configurations for the administrator and the
// workers. The file names become the defaults of the corresponding flags of the other services.
//
// It defines the files of a secured service on one machine. It never overwrites an existing
// secret. It is not used when the services run as separate processes: there, the operator
// provides the files. It serves "Authentication" of the specification.
package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/portico-platform/portico/services/kit/run"
)

// vocabularyFile keeps the choice of names.
const vocabularyFile = "vocabulary"

// Services returns the service that creates the data folder, which has to start before those that read what it makes, and
// one to start as soon as clients are served. If the process stops before that, what a first start has created is
// deleted: nothing was stored, and the next start may choose another vocabulary.
func Services() (first, serving run.Service) {
	var served atomic.Bool
	first = Service()
	first.Start = func(ctx context.Context, n *run.Node) error { return start(n, served.Load) }
	return first, run.Service{
		Name:  "keep",
		About: "keeps the data folder once clients are served; a first start that fails before deletes it",
		Start: func(context.Context, *run.Node) error {
			served.Store(true)
			return nil
		},
	}
}

// Defaults sets --vocabulary to that of the data folder, unless it is given.
func Defaults(flags *pflag.FlagSet) error {
	dir, _ := flags.GetString("data-dir")
	stored, err := os.ReadFile(filepath.Join(dir, vocabularyFile))
	if f := flags.Lookup("vocabulary"); err == nil && f != nil && !f.Changed {
		if err := f.Value.Set(strings.TrimSpace(string(stored))); err != nil {
			return err
		}
	}
	return nil // a folder that cannot be read is reported by the start
}

// Service returns the service that creates the data folder alone.
func Service() run.Service {
	return run.Service{
		Name:  "home",
		About: "creates the data folder: certificates, tokens and kubeconfigs",
		Flags: func(fs *pflag.FlagSet) {
			fs.String("data-dir", "./portico-data", "data `folder`; the first start creates it with a CA, an admin token and a kubeconfig")
		},
		Start: func(_ context.Context, n *run.Node) error { return start(n, func() bool { return true }) },
	}
}

// start prepares the folder. When the service stops and the folder is not to be kept, what it has created is deleted.
func start(n *run.Node, keep func() bool) error {
	address, err := addressOf(n.Flags)
	if err != nil {
		return err
	}
	dir, _ := n.Flags.GetString("data-dir")
	h, err := open(dir)
	if err != nil {
		return err
	}
	lock, err := h.lock()
	if err != nil {
		return err
	}
	n.OnStop(func(context.Context) { _ = lock.Close() }) // which ends with the process at the latest
	if h.isNew() {
		n.OnStop(func(context.Context) { // while the folder is locked
			if keep() {
				return
			}
			if err := h.clear(); err != nil {
				n.Log.Warn("files of the failed start are left", "error", err)
			}
		})
	}
	h.noSync, _ = n.Flags.GetBool("unsafe-no-fsync") // a flag of the embedded etcd
	if err := h.checkVocabulary(n.Vocabulary.Name); err != nil {
		return err
	}
	if err := h.makeCertificates(address.hosts()); err != nil {
		return fmt.Errorf("creating certificates: %w", err)
	}
	n.Go("renewing the certificates", func(ctx context.Context) error {
		return h.renewCertificates(ctx, n.Log, address.hosts())
	})
	tokens, err := h.makeTokens()
	if err != nil {
		return fmt.Errorf("creating tokens: %w", err)
	}
	if err := h.makeClientConfigs(address, tokens, n.Flags.Lookup("tls-cert-file")); err != nil {
		return fmt.Errorf("creating client configurations: %w", err)
	}
	return h.setFlags(n)
}

// home is an opened data folder.
type home struct {
	dir string
	// noSync leaves it to the system when files reach the disk.
	noSync bool
}

// open creates the folder if necessary; only its owner may read it.
func open(dir string) (*home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"", "pki"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
	return &home{dir: dir}, nil
}

// lockFile is locked by the process that uses the folder. It stays when that ends.
const lockFile = "lock"

// lock locks the folder before anything in it is read or changed: it returns an error if another process uses it.
func (h *home) lock() (*fileutil.LockedFile, error) {
	lock, err := fileutil.TryLockFile(h.path(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", h.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	return lock, nil
}

// isNew reports whether the folder has nothing but what open and lock create.
func (h *home) isNew() bool {
	for folder, expected := range map[string][]string{"": {lockFile, "pki"}, "pki": nil} {
		entries, err := os.ReadDir(h.path(folder))
		if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(expected, e.Name()) }) {
			return false
		}
	}
	return true
}

// clear deletes what is in the folder, the lock last, and the folder unless it is a mount or has something new.
func (h *home) clear() error {
	entries, err := os.ReadDir(h.dir)
	for _, e := range entries {
		if e.Name() != lockFile {
			err = errors.Join(err, os.RemoveAll(h.path(e.Name())))
		}
	}
	err = errors.Join(err, os.Remove(h.path(lockFile)))
	if err == nil {
		_ = os.Remove(h.dir)
	}
	return err
}

func (h *home) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

// checkVocabulary remembers the vocabulary of the data and refuses another one:
// the names are part of what is stored.
func (h *home) checkVocabulary(name string) error {
	stored, err := h.readOrMake(vocabularyFile, func() ([]byte, error) { return []byte(name + "\n"), nil })
	if err != nil {
		return err
	}
	if was := strings.TrimSpace(string(stored)); was != name {
		return run.Usagef("--vocabulary=%s: the data in %s was created with --vocabulary=%s; use that or another --data-dir", name, h.dir, was)
	}
	return nil
}

// Files returns the names of the files in the folder that belong to a backup of it: what
// is made at the first start alone, and what clients have copies of.
func Files() []string {
	return []string{vocabularyFile, caCert, caKey, servingCert, servingKey, signingCert, signingKey,
		proxyCACert, proxyCAKey, proxyCert, proxyKey, admissionCACert, admissionCAKey, admissionCert, admissionKey, tokenFile, adminToken, adminConfig, workersConfig}
}

// setFlags points the other services to the files, as far as the user has not chosen other files. Lists get one
// more entry: the administrator of the folder and the certificates of its signer are valid in addition to the
// user's.
func (h *home) setFlags(n *run.Node) error {
	accountKey := h.path(servingKey) // or the configured key of the server
	if f := n.Flags.Lookup("tls-private-key-file"); f != nil && f.Changed {
		accountKey = f.Value.String()
	}
	errs := []error{n.Default("service-account-key-file", accountKey)}
	for flag, name := range map[string]string{
		"tls-cert-file": servingCert, "tls-private-key-file": servingKey,
		"cluster-signing-cert-file": signingCert, "cluster-signing-key-file": signingKey,
		"kubeconfig": workersConfig,
	} {
		errs = append(errs, n.Default(flag, h.path(name)))
	}
	for flag, name := range map[string]string{"token-auth-file": tokenFile, "client-ca-file": signingCert} {
		if f := n.Flags.Lookup(flag); f != nil {
			errs = append(errs, f.Value.Set(h.path(name)))
		}
	}
	return errors.Join(append(errs, h.setProxyFlags(n), h.setAdmissionFlags(n))...)
}

// setAdmissionFlags gives admission its client certificate, unless the user has set one of
// the two flags.
func (h *home) setAdmissionFlags(n *run.Node) error {
	const certFlag, keyFlag = "admission-client-cert-file", "admission-client-key-file"
	for _, flag := range []string{certFlag, keyFlag} {
		if f := n.Flags.Lookup(flag); f != nil && f.Changed {
			return nil
		}
	}
	return errors.Join(n.Default(certFlag, h.path(admissionCert)), n.Default(keyFlag, h.path(admissionKey)))
}

// readOrMake returns the content of a file, and creates the file if it is missing. The file
// is written atomically, so an interrupted start leaves no partial file.
func (h *home) readOrMake(name string, content func() ([]byte, error)) ([]byte, error) {
	existing, err := os.ReadFile(h.path(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return existing, err
	}
	created, err := content()
	if err != nil {
		return nil, err
	}
	return created, h.write(name, created)
}

// write writes a file atomically; only its owner may read it.
func (h *home) write(name string, content []byte) error {
	temporary := h.path(name) + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if !h.noSync {
		err = errors.Join(err, f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, h.path(name))
}
