package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// maxBundle is the limit on a trust bundle in bytes.
const maxBundle = 1 << 20

// bundleName checks that the name of a bundle begins with the name of its signer.
func bundleName(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	signer := rules.Text(rules.Object(m, "spec"), "signerName")
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	c.Name(func(name string) []string {
		switch rest, named := strings.CutPrefix(name, prefix); {
		case signer == "" && strings.Contains(name, ":"):
			return []string{"ClusterTrustBundle without signer name must not have \":\" in its name"}
		case signer == "":
			return validation.IsDNS1123Subdomain(name)
		case named:
			return validation.IsDNS1123Subdomain(rest)
		}
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)}
	})
}

// bundleCertificates checks that the bundle consists of certificates of authorities, each of
// them once. A bundle that does not change is not parsed again.
func bundleCertificates(c *rules.Check, m, old map[string]any, at *field.Path) {
	bundle, at := rules.Text(m, "trustBundle"), at.Field("trustBundle")
	if old != nil && rules.Text(old, "trustBundle") == bundle {
		return
	}
	if len(bundle) > maxBundle {
		c.TooLong(at, maxBundle)
		return
	}
	const omitted = "<value omitted>"
	wrong := false
	entries := map[string][]int{}
	var order []string
	for i, rest := 0, []byte(bundle); ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if problem := notAuthority(block); problem != "" {
			wrong = true
			c.Invalid(at, omitted, fmt.Sprintf("entry %d %s", i, problem))
			continue
		}
		if key := string(block.Bytes); entries[key] == nil {
			order = append(order, key)
		}
		entries[string(block.Bytes)] = append(entries[string(block.Bytes)], i)
	}
	switch {
	case wrong:
	case len(entries) == 0:
		c.Invalid(at, omitted, "at least one trust anchor must be provided")
	default:
		for _, key := range order {
			if same := entries[key]; len(same) > 1 {
				c.Invalid(at, omitted, fmt.Sprintf("duplicate trust anchor (indices %v)", same))
			}
		}
	}
}

// notAuthority returns what is wrong with a block that must be the certificate of an
// authority.
func notAuthority(block *pem.Block) string {
	if block.Type != "CERTIFICATE" {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) != 0 {
		return "has PEM block headers"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !certificate.IsCA:
		return "does not have the CA bit set"
	case !certificate.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
