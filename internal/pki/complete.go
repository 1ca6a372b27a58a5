package pki

import (
	"errors"
	"fmt"
	"os"
)

// Complete adds what identities of an older release lack: authorities, certificates and
// files of existing folders, and folders without a secret. It does not create the folder of
// a process that runs on another machine again. It also writes what an interrupted command has
// not brought up to date. It returns the created files and folders, and can be repeated after
// an error.
func (p *PKI) Complete() (created []string, err error) {
	for _, name := range authorityNames() {
		missing, err := p.missing(authorityFile(name, ".crt"))
		if err != nil {
			return created, err
		}
		if !missing {
			continue
		}
		if err := p.makeOrFetchAuthority(name); err != nil {
			return created, err
		}
		created = append(created, authorityFile(name, ".crt"))
	}
	for _, f := range p.site.folders() {
		files, err := p.completeFolder(f)
		if created = append(created, files...); err != nil {
			return created, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	lacking, err := p.lackingServerConfigs()
	if err != nil || len(lacking) == 0 {
		return created, err
	}
	return append(created, lacking...), p.writeServerConfigs()
}

func (p *PKI) completeFolder(f folder) (created []string, err error) {
	missing, err := p.missing(f.name)
	if err != nil {
		return nil, err
	}
	if missing {
		if len(f.certificates) > 0 {
			return nil, nil // the process runs on another machine
		}
		return []string{f.name}, p.makeFolder(f)
	}
	add := func(file string, make func() error, others ...string) error {
		missing, err := p.missing(append(others, file)...)
		if err != nil || !missing {
			return err
		}
		created = append(created, file)
		return make()
	}
	for file, authorities := range f.trust {
		file = f.name + "/" + file
		if err := add(file, func() error { return p.concatenate(file, authorities) }); err != nil {
			return created, err
		}
	}
	for _, r := range f.certificates {
		file := f.name + "/" + r.file
		// A certificate without its key, or the reverse, is not an old release but damage.
		pair := func() error { return p.tree.Replace(f.name, func() error { return p.makeCertificate(f, r) }) }
		if err := add(file+".crt", pair, file+".key"); err != nil {
			return created, err
		}
	}
	if f.administrator {
		if outdated, err := p.outdatedClientConfig(f); !outdated || err != nil {
			return created, err
		}
		return append(created, f.name+"/"+clientConfig), p.writeClientConfig(f)
	}
	return created, nil
}

// missing reports whether none of the files exists.
func (p *PKI) missing(names ...string) (bool, error) {
	for _, name := range names {
		if _, err := os.Lstat(p.path(name)); !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}
