package clienttrust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
)

// parse returns the certificates in PEM blocks. It skips everything else.
func parse(content []byte) (found []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return found
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, certificate)
		}
	}
}

// addCertificates adds certificates to those under a key, and removes those that have
// expired.
func (k *Keeper) addCertificates(data map[string]any, key string, own []byte) {
	before, _ := data[key].(string)
	known, now := parse([]byte(before)), k.now()
	all := slices.DeleteFunc(slices.Concat(known, parse(own)), func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	merged := encode(all)
	if len(merged) > maxBundle {
		merged = encode(parse(own))
	}
	if merged != "" || before != "" {
		data[key] = merged
	}
}

// encode returns certificates as PEM, each once.
func encode(all []*x509.Certificate) string {
	var out bytes.Buffer
	seen := map[string]bool{}
	for _, c := range all {
		if !seen[string(c.Raw)] {
			seen[string(c.Raw)] = true
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer does not fail
		}
	}
	return out.String()
}
