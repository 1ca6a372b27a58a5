// Package tokenkey reads the keys of service account tokens. It decides which key of the
// given files signs, with which algorithm, and the ID of a key. It signs nothing and knows no
// tokens. It serves "Service account token flags" of the
// specification.
package tokenkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// Key is a signing key.
type Key struct {
	crypto.Signer
	// Algorithm is the JWS algorithm, such as RS256.
	Algorithm string
	// ID is derived from the public key.
	ID string
}

// ErrNone means that no file contains a private key.
var ErrNone = errors.New("no private key to sign with")

// Read returns the first private key in PEM files, which may contain public keys too;
// ErrNone if there is none.
func Read(files ...string) (*Key, error) {
	for _, file := range files {
		signer, err := readFile(file)
		if err != nil {
			return nil, err
		}
		if signer != nil {
			return newKey(signer)
		}
	}
	return nil, ErrNone
}

func newKey(signer crypto.Signer) (*Key, error) {
	algorithm, id, err := Describe(signer.Public())
	if err != nil {
		return nil, err
	}
	return &Key{Signer: signer, Algorithm: algorithm, ID: id}, nil
}

// Describe returns the JWS algorithm and the ID of a public key; an error if no tokens are signed
// with such keys.
func Describe(public any) (algorithm, id string, err error) {
	if algorithm = algorithmOf(public); algorithm == "" {
		return "", "", fmt.Errorf("a key of type %T cannot sign tokens", public)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(der)
	return algorithm, base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func algorithmOf(public any) string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return "RS256"
	case *ecdsa.PublicKey:
		return map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]
	}
	return ""
}

// readFile returns the first private key in a file; nil if there is none.
func readFile(file string) (crypto.Signer, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, nil
		}
		var key any
		switch block.Type {
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, block.Type, err)
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
}
