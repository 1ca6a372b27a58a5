package pki

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
)

// Folders returns the names of the folders of the site's processes. The folders of the
// authorities and of the service account keys are not included.
func (p *PKI) Folders() (names []string) {
	for _, f := range p.site.folders() {
		names = append(names, f.name)
	}
	return names
}

// UpdateSite adapts the identities to a changed site: it creates the folders of new members,
// and renews the certificates of the front door with the same keys if its names have
// changed. Folders of former members stay. It returns the created files and folders. The
// workers' server and the authorities cannot change.
func (p *PKI) UpdateSite(site Site) (created []string, err error) {
	site.CAS, site.AuthorityValidity = p.site.CAS, p.site.AuthorityValidity
	if reflect.DeepEqual(normalized(site), normalized(p.site)) {
		return nil, nil
	}
	if site.WorkersServer != p.site.WorkersServer {
		return nil, fmt.Errorf("--workers-server: was %q when the identities were created, and cannot be changed to %q", p.site.WorkersServer, site.WorkersServer)
	}
	if err := site.Check(); err != nil {
		return nil, err
	}
	before := p.site
	p.site = site
	for _, f := range site.folders() {
		switch _, err := os.Lstat(p.path(f.name)); {
		case errors.Is(err, os.ErrNotExist):
			if err := p.makeFolder(f); err != nil {
				return created, fmt.Errorf("%s: %w", f.name, err)
			}
			created = append(created, f.name)
		case err != nil:
			return created, err
		default:
			files, err := p.updateFolder(f, before)
			if created = append(created, files...); err != nil {
				return created, err
			}
		}
	}
	if err := p.writeServerConfigs(); err != nil {
		return created, err
	}
	content, err := json.MarshalIndent(p.site, "", "  ")
	if err != nil {
		return created, err
	}
	return created, p.write(siteFile, append(content, '\n'))
}

// updateFolder renews the certificates of a folder whose names have changed, and rewrites
// the client configuration if its server has changed.
func (p *PKI) updateFolder(f folder, before Site) (created []string, err error) {
	for _, old := range before.folders() {
		if old.name != f.name {
			continue
		}
		for n, r := range f.certificates {
			if reflect.DeepEqual(r, old.certificates[n]) {
				continue
			}
			if _, err := p.renewCertificate(f, r); err != nil {
				return created, fmt.Errorf("%s/%s: %w", f.name, r.file, err)
			}
			created = append(created, f.name+"/"+r.file+".crt")
		}
		if old.server != f.server {
			return append(created, f.name+"/"+clientConfig), p.writeClientConfig(f)
		}
	}
	return created, nil
}

// normalized returns a site as it is read from its file.
func normalized(s Site) Site {
	if len(s.FrontdoorHosts) == 0 {
		s.FrontdoorHosts = nil
	}
	if len(s.EtcdMembers) == 0 {
		s.EtcdMembers = nil
	}
	if len(s.NATSServers) == 0 {
		s.NATSServers = nil
	}
	return s
}
