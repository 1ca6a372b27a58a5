package tokenkey

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// ReadPublic reads the public keys in a PEM file, including those of private keys and
// certificates. Other blocks are ignored.
func ReadPublic(file string) ([]any, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var keys []any
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		key, err := publicKey(block)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, block.Type, err)
		}
		if key != nil {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no PEM key in it", file)
	}
	return keys, nil
}

func publicKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	case "RSA PRIVATE KEY":
		return public(x509.ParsePKCS1PrivateKey(block.Bytes))
	case "EC PRIVATE KEY":
		return public(x509.ParseECPrivateKey(block.Bytes))
	case "PRIVATE KEY":
		return public(x509.ParsePKCS8PrivateKey(block.Bytes))
	}
	return nil, nil
}

// public returns the public key of a parsed private key.
func public[T any](private T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	signer, ok := any(private).(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", private)
	}
	return signer.Public(), nil
}
