package revocation

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/portico-platform/portico/services"
)

// The names of the type of issued certificates, the same in every vocabulary.
const (
	CertificateKind     = "IssuedCertificate"
	CertificateResource = "issuedcertificates"
)

// maxNames bounds the alternative names in a record, in bytes: the requester of a certificate chooses them.
const maxNames = 4096

// Certificate is the spec of an IssuedCertificate: the record of a certificate that csr-signer
// has issued. The name of the object is the serial number.
type Certificate struct {
	Serial        string   `json:"serial"` // in lower-case hexadecimal, without leading zeros
	KeyID         string   `json:"keyID,omitempty"`
	Fingerprint   string   `json:"fingerprint"` // SHA-256 of the certificate, in hexadecimal
	CommonName    string   `json:"commonName,omitempty"`
	Organizations []string `json:"organizations,omitempty"`
	// Names are the alternative names of all kinds, as many as have maxNames bytes together.
	Names      []string  `json:"names,omitempty"`
	SignerName string    `json:"signerName"`
	Requester  string    `json:"requester"`
	Request    Request   `json:"request"`
	NotBefore  time.Time `json:"notBefore"`
	NotAfter   time.Time `json:"notAfter"`
}

// Request is the CertificateSigningRequest of a certificate, which may be gone.
type Request struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Describe returns what a certificate itself says, without its signer and requester.
func Describe(c *x509.Certificate) Certificate {
	sum := sha256.Sum256(c.Raw)
	names := slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	d := Certificate{Serial: c.SerialNumber.Text(16), KeyID: hex.EncodeToString(c.SubjectKeyId), Fingerprint: hex.EncodeToString(sum[:]),
		CommonName: c.Subject.CommonName, Organizations: c.Subject.Organization, NotBefore: c.NotBefore.UTC(), NotAfter: c.NotAfter.UTC()}
	size := 0
	for _, name := range names {
		if size += len(name); size > maxNames {
			break
		}
		d.Names = append(d.Names, name)
	}
	return d
}

// DecodeCertificate returns the spec of a stored IssuedCertificate.
func DecodeCertificate(object []byte) (Certificate, error) {
	var stored struct {
		Spec Certificate `json:"spec"`
	}
	err := json.Unmarshal(object, &stored)
	return stored.Spec, err
}

// Authentication returns the result of an authentication with the certificate, to which
// Revocations apply.
func (c *Certificate) Authentication() *services.Authentication {
	return &services.Authentication{User: services.UserInfo{Name: c.CommonName, Groups: c.Organizations},
		Credential: services.Credential{Serial: c.Serial, KeyID: c.KeyID, Issued: c.NotBefore, Expires: c.NotAfter}}
}

// Check returns the mistakes of a spec whose object has a name.
func (c *Certificate) Check(name string) (problems []Problem) {
	add := func(field, message string, value any) {
		problems = append(problems, Problem{field, services.CauseInvalid, message, value})
	}
	switch {
	case !hexadecimal.MatchString(c.Serial) || canonical(c.Serial) != c.Serial:
		add("serial", "must be a number in lower-case hexadecimal without leading zeros", shortened(c.Serial))
	case name != c.Serial:
		add("serial", "must be the name of the object", c.Serial)
	}
	if !c.NotAfter.After(c.NotBefore) {
		add("notAfter", "must be after notBefore", c.NotAfter.Format(time.RFC3339))
	}
	for field, value := range map[string]string{"keyID": c.KeyID, "fingerprint": c.Fingerprint, "commonName": c.CommonName, "signerName": c.SignerName, "requester": c.Requester} {
		if len(value) > maxText {
			add(field, fmt.Sprintf("must have at most %d bytes", maxText), "")
		}
	}
	return problems
}

func shortened(text string) string { return text[:min(len(text), 64)] }

// Canonical returns a serial number in hexadecimal as IssuedCertificates have it, without
// colons, leading zeros and capitals; empty if it is none.
func Canonical(serial string) string {
	if !hexadecimal.MatchString(serial) {
		return ""
	}
	return canonical(serial)
}
