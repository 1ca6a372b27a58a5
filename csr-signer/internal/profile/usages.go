package profile

import "crypto/x509"

// keyUsages are the usages that are bits of the key usage extension.
var keyUsages = map[string]x509.KeyUsage{
	"signing":            x509.KeyUsageDigitalSignature,
	digitalSignature:     x509.KeyUsageDigitalSignature,
	"content commitment": x509.KeyUsageContentCommitment,
	keyEncipherment:      x509.KeyUsageKeyEncipherment,
	"key agreement":      x509.KeyUsageKeyAgreement,
	"data encipherment":  x509.KeyUsageDataEncipherment,
	"cert sign":          x509.KeyUsageCertSign,
	"crl sign":           x509.KeyUsageCRLSign,
	"encipher only":      x509.KeyUsageEncipherOnly,
	"decipher only":      x509.KeyUsageDecipherOnly,
}

// extendedUsages are the usages of the extended key usage extension.
var extendedUsages = map[string]x509.ExtKeyUsage{
	"any":              x509.ExtKeyUsageAny,
	serverAuth:         x509.ExtKeyUsageServerAuth,
	clientAuth:         x509.ExtKeyUsageClientAuth,
	"code signing":     x509.ExtKeyUsageCodeSigning,
	"email protection": x509.ExtKeyUsageEmailProtection,
	"s/mime":           x509.ExtKeyUsageEmailProtection,
	"ipsec end system": x509.ExtKeyUsageIPSECEndSystem,
	"ipsec tunnel":     x509.ExtKeyUsageIPSECTunnel,
	"ipsec user":       x509.ExtKeyUsageIPSECUser,
	"timestamping":     x509.ExtKeyUsageTimeStamping,
	"ocsp signing":     x509.ExtKeyUsageOCSPSigning,
	"microsoft sgc":    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	"netscape sgc":     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}
