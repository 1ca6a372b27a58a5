package pki

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
)

// Folders returns the names of the folders of the site's processes. The authorities, and
// the keys that several processes have copies of, are in none of them.
func (p *PKI) Folders() (names []string) {
	for _, f := range p.site.folders() {
		names = append(names, f.name)
	}
	return names
}

// Resite makes identities those of another site: folders of new members are made, and
// when names of the front door have changed, its certificates are made anew for the keys
// that they have. Folders of former members stay. It returns what was made. The workers'
// server and the authorities cannot change.
func (p *PKI) Resite(site Site) (made []string, err error) {
	site.CAS, site.AuthorityValidity = p.site.CAS, p.site.AuthorityValidity
	if reflect.DeepEqual(normal(site), normal(p.site)) {
		return nil, nil
	}
	if site.WorkersServer != p.site.WorkersServer {
		return nil, fmt.Errorf("--workers-server: was %q when the identities were made, and cannot become %q", p.site.WorkersServer, site.WorkersServer)
	}
	if err := site.check(); err != nil {
		return nil, err
	}
	before := p.site
	p.site = site
	for _, f := range site.folders() {
		switch _, err := os.Lstat(p.path(f.name)); {
		case errors.Is(err, os.ErrNotExist):
			if err := p.makeFolder(f); err != nil {
				return made, fmt.Errorf("%s: %w", f.name, err)
			}
			made = append(made, f.name)
		case err != nil:
			return made, err
		default:
			names, err := p.rename(f, before)
			if made = append(made, names...); err != nil {
				return made, err
			}
		}
	}
	if err := p.writeServerConfigs(); err != nil {
		return made, err
	}
	content, err := json.MarshalIndent(p.site, "", "  ")
	if err != nil {
		return made, err
	}
	return made, p.write(siteFile, append(content, '\n'))
}

// rename makes the certificates of a folder anew whose names were others before, and the
// administrator's client configuration when its server was another.
func (p *PKI) rename(f folder, before Site) (made []string, err error) {
	for _, old := range before.folders() {
		if old.name != f.name {
			continue
		}
		for n, r := range f.certificates {
			if reflect.DeepEqual(r, old.certificates[n]) {
				continue
			}
			if _, err := p.renewCertificate(f, r); err != nil {
				return made, fmt.Errorf("%s/%s: %w", f.name, r.file, err)
			}
			made = append(made, f.name+"/"+r.file+".crt")
		}
		if old.server != f.server {
			return append(made, f.name+"/"+clientConfig), p.writeClientConfig(f)
		}
	}
	return made, nil
}

// normal is a site as it comes back from its file.
func normal(s Site) Site {
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
