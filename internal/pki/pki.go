// Package pki creates, renews and lists the credentials of the processes of a suite: for
// every process one folder with its certificates, keys, seeds and client configuration, and
// without secrets of other processes. Certificates are signed by smallstep/certificates, by
// default with keys in the folder "authorities".
//
// It decides which files each process gets; docs/operations/certificates.md lists the flags
// for the files. Every kind of connection has its own authority: one for connections between
// services, another for users of the API, another for etcd and so on, so that a certificate
// for one kind is not accepted by the others. It serves "Authentication" and "What the
// service does" of the specification.
package pki

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/smallstep/certificates/cas/apiv1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/internal/pki/files"
)

// Site describes the installation for which the files are created. It is stored with them
// for later commands.
type Site struct {
	// Server is the URL at which the administrator reaches the front door, and
	// WorkersServer the one of the workers.
	Server        string `json:"server"`
	WorkersServer string `json:"workersServer"`
	// FrontdoorHosts are further names and addresses in the serving certificate.
	FrontdoorHosts []string `json:"frontdoorHosts"`
	// EtcdMembers and NATSServers are host names or addresses; each gets a folder.
	EtcdMembers []string `json:"etcdMembers"`
	NATSServers []string `json:"natsServers"`
	// Validity is that of certificates, and AuthorityValidity that of their authorities.
	Validity          metav1.Duration `json:"validity"`
	AuthorityValidity metav1.Duration `json:"authorityValidity"`
	// CAS configures remote authorities by name, in the format of the "cas" section of
	// smallstep's configuration.
	CAS map[string]apiv1.Options `json:"cas,omitempty"`
}

const siteFile = "site.json"

// PKI is a folder of identities.
type PKI struct {
	dir  string
	tree *files.Tree
	lock io.Closer // nil: others may change it
	site Site
	now  func() time.Time

	authorities map[string]*authority // those in use
}

// Init creates the folder with all files, or nothing if it fails. It refuses an existing
// folder.
func Init(dir string, site Site) error {
	if err := site.Check(); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s exists: nothing is overwritten", dir), err)
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(parent, ".pki-") // mode 0700
	if err != nil {
		return err
	}
	p := &PKI{dir: partial, tree: files.New(partial), site: site, now: time.Now}
	if err = p.makeAll(); err == nil {
		err = os.Rename(partial, dir) // which fails if another process has created it meanwhile
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

// Edit opens a folder created by Init to change it. It waits for others that change it, and
// completes what an interrupted one has begun to replace. Close ends it.
func Edit(dir string) (*PKI, error) {
	if _, err := os.Stat(filepath.Join(dir, siteFile)); err != nil {
		return nil, noIdentities(err)
	}
	lock, err := files.Lock(dir)
	if err != nil {
		return nil, err
	}
	if err := files.New(dir).Recover(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	p, err := Open(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	p.lock = lock
	return p, nil
}

// Close lets others change the folder.
func (p *PKI) Close() error { return p.lock.Close() }

func noIdentities(err error) error { return fmt.Errorf("no identities found: %w", err) }

// Open opens a folder created by Init to read it.
func Open(dir string) (*PKI, error) {
	content, err := os.ReadFile(filepath.Join(dir, siteFile))
	if err != nil {
		return nil, noIdentities(err)
	}
	p := &PKI{dir: dir, tree: files.New(dir), now: time.Now}
	if err := json.Unmarshal(content, &p.site); err != nil {
		return nil, fmt.Errorf("%s: %w", siteFile, err)
	}
	return p, p.site.Check()
}

func (p *PKI) makeAll() error {
	content, err := json.MarshalIndent(p.site, "", "  ")
	if err != nil {
		return err
	}
	if err := p.write(siteFile, append(content, '\n')); err != nil {
		return err
	}
	if err := p.makeAuthorities(); err != nil {
		return err
	}
	if err := p.makeAccountKeys(); err != nil {
		return err
	}
	for _, f := range p.site.folders() {
		if err := p.makeFolder(f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return p.writeServerConfigs()
}

// Issue creates the folder of one process with new keys. If replace is true, it replaces an
// existing folder, for example after keys were stolen. Certificates issued before stay valid
// until they expire.
func (p *PKI) Issue(name string, replace bool) error {
	folders := p.site.folders()
	i := slices.IndexFunc(folders, func(f folder) bool { return f.name == name })
	if i < 0 {
		var names []string
		for _, f := range folders {
			names = append(names, f.name)
		}
		return fmt.Errorf("no process is called %q; there are %q", name, names)
	}
	if _, err := os.Lstat(p.path(name)); err == nil && !replace {
		return fmt.Errorf("%s exists: nothing is overwritten without --replace", p.path(name))
	}
	if err := p.makeFolder(folders[i]); err != nil {
		return err
	}
	return p.writeServerConfigs()
}

// Renewed is a certificate replaced by Renew.
type Renewed struct {
	File  string
	Until time.Time
}

// Renew replaces the certificates that expire within a time by new ones for the same keys,
// so that each file is replaced atomically. It does not replace authorities; ending contains
// those that expire within the time.
func (p *PKI) Renew(within time.Duration) (renewed []Renewed, ending []string, err error) {
	until := p.now().Add(within)
	for _, name := range authorityNames() {
		a, err := p.authority(name)
		if err != nil {
			return nil, nil, err
		}
		if a.root.NotAfter.Before(until) {
			ending = append(ending, name)
		}
	}
	for _, f := range p.site.folders() {
		for _, r := range f.certificates {
			file := f.name + "/" + r.file
			cert, err := p.readCertificate(file + ".crt")
			if errors.Is(err, os.ErrNotExist) {
				continue // the process runs on another machine
			}
			if err != nil {
				return renewed, ending, err
			}
			if !cert.NotAfter.Before(until) {
				continue
			}
			if cert, err = p.renewCertificate(f, r); err != nil {
				return renewed, ending, fmt.Errorf("%s: %w", file, err)
			}
			renewed = append(renewed, Renewed{file + ".crt", cert.NotAfter})
		}
	}
	return renewed, ending, nil
}

func (p *PKI) renewCertificate(f folder, r request) (*x509.Certificate, error) {
	key, err := p.readKey(f.name + "/" + r.file + ".key")
	if err != nil {
		return nil, err
	}
	cert, err := p.issue(f.name+"/"+r.file+".crt", r, key)
	if err != nil || !f.administrator {
		return cert, err
	}
	return cert, p.writeClientConfig(f)
}
