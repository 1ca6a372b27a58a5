package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// accountsDir contains the keys that sign service account tokens.
const accountsDir = "accounts"

const clientConfig = "kubeconfig"

func (p *PKI) makeAccountKeys() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := p.writeKey(accountsDir+"/service-account.key", key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return p.write(accountsDir+"/service-account.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
}

// makeFolder creates all files of a process, with new keys, or none if it fails.
func (p *PKI) makeFolder(f folder) error {
	return p.tree.Replace(f.name, func() error { return p.makeFiles(f) })
}

func (p *PKI) makeFiles(f folder) error {
	for file, authorities := range f.trust {
		if err := p.concatenate(f.name+"/"+file, authorities); err != nil {
			return err
		}
	}
	for file, from := range f.copies {
		content, err := os.ReadFile(p.path(from))
		if err != nil {
			return err
		}
		if err := p.write(f.name+"/"+file, content); err != nil {
			return err
		}
	}
	for _, r := range f.certificates {
		if err := p.makeCertificate(f, r); err != nil {
			return err
		}
	}
	if f.busRole != "" {
		if err := p.makeSeed(f.name); err != nil {
			return err
		}
	}
	if f.server != "" {
		return p.writeClientConfig(f)
	}
	return nil
}

// makeCertificate creates a certificate with a new key.
func (p *PKI) makeCertificate(f folder, r request) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := p.writeKey(f.name+"/"+r.file+".key", key); err != nil {
		return err
	}
	_, err = p.issue(f.name+"/"+r.file+".crt", r, key)
	return err
}

// concatenate writes the certificates of authorities into one file.
func (p *PKI) concatenate(file string, authorities []string) error {
	var all bytes.Buffer
	for _, name := range authorities {
		content, err := os.ReadFile(p.path(authorityFile(name, ".crt")))
		if err != nil {
			return err
		}
		all.Write(content)
	}
	return p.write(file, all.Bytes())
}

// writeClientConfig writes the kubeconfig of a user of the API. A worker's kubeconfig refers
// to the files next to it, which are reloaded when they change. The administrator's
// kubeconfig contains them, so that it can be copied to other machines.
func (p *PKI) writeClientConfig(f folder) error {
	cluster := &api.Cluster{Server: f.server, CertificateAuthority: "serving-ca.crt"}
	user := &api.AuthInfo{ClientCertificate: "user.crt", ClientKey: "user.key"}
	if f.administrator {
		for _, e := range []struct {
			file    *string
			content *[]byte
		}{
			{&cluster.CertificateAuthority, &cluster.CertificateAuthorityData},
			{&user.ClientCertificate, &user.ClientCertificateData},
			{&user.ClientKey, &user.ClientKeyData},
		} {
			content, err := os.ReadFile(p.path(f.name + "/" + *e.file))
			if err != nil {
				return err
			}
			*e.file, *e.content = "", content
		}
	}
	config := api.NewConfig()
	config.Clusters["portico"], config.AuthInfos[f.name] = cluster, user
	config.Contexts[f.name] = &api.Context{Cluster: "portico", AuthInfo: f.name}
	config.CurrentContext = f.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return p.write(f.name+"/"+clientConfig, content)
}
