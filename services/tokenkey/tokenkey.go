// Package tokenkey reads the signing key of service account tokens. It decides which
// key of the given files is used, with which algorithm, and its key ID. It signs
// nothing and knows no tokens. It serves "Service account token flags" of the
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
	algorithm, err := algorithmOf(signer)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	return &Key{Signer: signer, Algorithm: algorithm, ID: base64.RawURLEncoding.EncodeToString(sum[:])}, nil
}

func algorithmOf(signer crypto.Signer) (string, error) {
	switch key := signer.(type) {
	case *rsa.PrivateKey:
		return "RS256", nil
	case *ecdsa.PrivateKey:
		algorithms := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}
		if algorithm := algorithms[key.Curve.Params().BitSize]; algorithm != "" {
			return algorithm, nil
		}
	}
	return "", fmt.Errorf("a key of type %T cannot sign tokens", signer)
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
