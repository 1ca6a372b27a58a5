package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// The limits on requests for certificates of pods, in seconds and bytes.
const (
	shortestLifetime    = 60 * 60
	longestLifetime     = 91 * 24 * 60 * 60
	longestOwnLifetime  = 24 * 60 * 60 // of signers of the project itself
	maxKeySize          = 10 << 10
	maxCertificateChain = 100 << 10
)

// podRequestLifetime checks for how long a certificate may be valid.
func podRequestLifetime(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil {
		return // does not change
	}
	most := int64(longestLifetime)
	if domain, _, _ := strings.Cut(rules.Text(m, "signerName"), "/"); domain == c.Vocabulary.Domain || strings.HasSuffix(domain, "."+c.Vocabulary.Domain) {
		most = longestOwnLifetime
	}
	if seconds := rules.Number(m, "maxExpirationSeconds"); seconds < shortestLifetime || seconds > most {
		c.Invalid(at.Field("maxExpirationSeconds"), seconds, fmt.Sprintf("must be in the range [%d, %d]", shortestLifetime, most))
	}
}

// podRequestKey checks that a request has a public key, and that its signature was made with
// the private one.
func podRequestKey(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil {
		return
	}
	request, key, proof := bytesOf(m, "stubPKCS10Request"), bytesOf(m, "pkixPublicKey"), bytesOf(m, "proofOfPossession")
	for name, value := range map[string][]byte{"stubPKCS10Request": request, "pkixPublicKey": key, "proofOfPossession": proof} {
		if len(value) > maxKeySize {
			c.TooLong(at.Field(name), maxKeySize)
			return
		}
	}
	const omitted = "<value omitted>"
	switch stub := len(request) > 0; {
	case stub && len(key)+len(proof) == 0:
		parsed, err := x509.ParseCertificateRequest(request)
		if err != nil {
			c.Invalid(at.Field("stubPKCS10Request"), omitted, "must be a valid PKCS#10 CSR")
		} else if problem := weakness(parsed.PublicKey); problem != "" {
			c.Invalid(at.Field("stubPKCS10Request"), omitted, problem)
		} else if parsed.CheckSignature() != nil {
			c.Invalid(at.Field("stubPKCS10Request"), omitted, "invalid signature")
		}
	case !stub && len(key) > 0 && len(proof) > 0:
		parsed, err := x509.ParsePKIXPublicKey(key)
		if err != nil {
			c.Invalid(at.Field("pkixPublicKey"), omitted, "must be a valid PKIX-serialized public key")
		} else if problem := weakness(parsed); problem != "" {
			c.Invalid(at.Field("pkixPublicKey"), omitted, problem)
		} else if !signed(parsed, rules.Text(m, "podUID"), proof) {
			c.Invalid(at.Field("proofOfPossession"), omitted, "could not verify proof-of-possession signature")
		}
	default:
		c.Invalid(at, omitted, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
	}
}

// bytesOf returns the bytes of a field in base64; nil if it has none.
func bytesOf(m map[string]any, name string) []byte {
	value, err := base64.StdEncoding.DecodeString(rules.Text(m, name))
	if err != nil {
		return nil
	}
	return value
}

// weakness returns why certificates for a key are not issued; "" if they are.
func weakness(key any) string {
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ""
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return ""
		}
		return "elliptic public keys must use curve P256, P384, or P521"
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			return "RSA keys must have modulus size 3072 or 4096"
		}
		return ""
	}
	return "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
}

// signed reports whether a signature of a text was made with the private key.
func signed(key any, text string, signature []byte) bool {
	hash := sha256.Sum256([]byte(text))
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, []byte(text), signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, hash[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPSS(key, crypto.SHA256, hash[:], signature, nil) == nil
	}
	return false
}

// podRequestStatus checks a change of the status: a request is issued, denied or failed once,
// and what is issued is a certificate for its key.
func podRequestStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	before := c.Count()
	conditions, list := rules.Objects(m, "conditions"), at.Field("conditions")
	for i, condition := range conditions {
		at := list.Item(i)
		if kind := rules.Text(condition, "type"); !ending[kind] {
			c.NotSupported(at.Field("type"), kind, "Issued", "Denied", "Failed")
		} else if i > 0 {
			c.Invalid(at.Field("type"), kind, `There may be at most one condition with type "Issued", "Denied", or "Failed"`)
		}
		if status := rules.Text(condition, "status"); status != "True" {
			c.NotSupported(at.Field("status"), status, "True")
		}
	}
	c.Conditions(conditions, list)
	had := rules.Objects(old, "conditions")
	switch {
	case c.Count() > before:
	case len(had) > 0:
		if !rules.Same(m, old) {
			c.Invalid(at, "<value omitted>", "immutable after PodCertificateRequest is issued, denied, or failed")
		}
	case len(conditions) == 0:
		if !rules.Same(m, old) {
			c.Invalid(at, "<value omitted>", `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
		}
	case rules.Text(conditions[0], "type") == "Issued":
		issued{c, rules.Object(c.Root, "spec")}.check(m, at)
	case len(rules.Without(m, "conditions")) > 0:
		c.Invalid(at, "<value omitted>", "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	}
}

// ending are the conditions that end a request.
var ending = map[string]bool{"Issued": true, "Denied": true, "Failed": true}

// issued checks the certificate that a request has been given.
type issued struct {
	*rules.Check
	spec map[string]any
}

func (c issued) check(m map[string]any, at *field.Path) {
	leaf, problem := leafOf(rules.Text(m, "certificateChain"))
	const omitted = "<value omitted>"
	switch where := at.Field("certificateChain"); {
	case problem != "":
		c.Invalid(where, omitted, problem)
		return
	case !c.forKey(leaf):
		c.Invalid(where, omitted, "leaf certificate was not issued to the requested public key")
		return
	case leaf.NotAfter.Sub(leaf.NotBefore) < shortestLifetime*time.Second:
		c.Invalid(where, omitted, "leaf certificate lifetime must be >= 1 hour")
	case leaf.NotAfter.Sub(leaf.NotBefore) > time.Duration(rules.Number(c.spec, "maxExpirationSeconds"))*time.Second:
		c.Invalid(where, omitted, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%d)", rules.Number(c.spec, "maxExpirationSeconds")))
	}
	const margin, near = 10 * time.Minute, 5 * time.Minute
	start, end, refresh := c.time(m, "notBefore", at), c.time(m, "notAfter", at), c.time(m, "beginRefreshAt", at)
	if start.IsZero() || end.IsZero() || refresh.IsZero() {
		return
	}
	if !start.Equal(leaf.NotBefore) {
		c.Invalid(at.Field("notBefore"), m["notBefore"], "must be set to the NotBefore time encoded in the leaf certificate")
	} else if time.Since(start).Abs() > near {
		c.Invalid(at.Field("notBefore"), m["notBefore"], "must be set to within 5 minutes of kube-apiserver's current time")
	}
	if !end.Equal(leaf.NotAfter) {
		c.Invalid(at.Field("notAfter"), m["notAfter"], "must be set to the NotAfter time encoded in the leaf certificate")
	}
	if refresh.Before(start.Add(margin)) {
		c.Invalid(at.Field("beginRefreshAt"), m["beginRefreshAt"], "must be at least 10 minutes after status.notBefore")
	} else if refresh.After(end.Add(-margin)) {
		c.Invalid(at.Field("beginRefreshAt"), m["beginRefreshAt"], "must be at least 10 minutes before status.notAfter")
	}
}

// time returns a required time; zero if there is none.
func (c issued) time(m map[string]any, name string, at *field.Path) time.Time {
	parsed, err := time.Parse(time.RFC3339, rules.Text(m, name))
	if err != nil {
		c.Required(at.Field(name), "must be present and consistent with the issued certificate")
		return time.Time{}
	}
	return parsed
}

// forKey reports whether a certificate is for the key of the request.
func (c issued) forKey(leaf *x509.Certificate) bool {
	key, _ := x509.ParsePKIXPublicKey(bytesOf(c.spec, "pkixPublicKey"))
	if request, err := x509.ParseCertificateRequest(bytesOf(c.spec, "stubPKCS10Request")); err == nil {
		key = request.PublicKey
	}
	requested, ok := key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && requested.Equal(leaf.PublicKey)
}

// leafOf returns the first certificate of a chain, or what is wrong with the chain.
func leafOf(chain string) (leaf *x509.Certificate, problem string) {
	if len(chain) > maxCertificateChain {
		return nil, fmt.Sprintf("must not have more than %d bytes", maxCertificateChain)
	}
	for rest := []byte(chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil && leaf == nil {
			return nil, "leaf certificate does not parse as valid X.509"
		} else if err != nil {
			return nil, "intermediate certificate does not parse as valid X.509"
		}
		if leaf == nil {
			leaf = parsed
		}
	}
	if leaf == nil {
		return nil, "issued certificate chain must contain at least one certificate"
	}
	return leaf, ""
}
