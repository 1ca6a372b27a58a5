package actions

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer signs tokens of service accounts that are bound to an audience and a time.
type Issuer struct {
	// Name is the issuer in the tokens.
	Name string
	// Audiences are those of tokens that are asked for without.
	Audiences []string
	// Claim is the name of the claim that says whom a token speaks for.
	Claim  string
	signer jose.Signer
}

// Sign lets an issuer sign with the first private key in the files; ErrNoKey when
// they hold none.
func (i *Issuer) Sign(files ...string) error {
	for _, file := range files {
		key, err := readPrivateKey(file)
		if err != nil {
			return err
		}
		if key == nil {
			continue
		}
		i.signer, err = newSigner(key)
		return err
	}
	return ErrNoKey
}

// ErrNoKey says that no file has a private key in it.
var ErrNoKey = errors.New("no private key to sign with")

// subject is whom a token speaks for, and what it ends with.
type subject struct {
	Namespace      string `json:"namespace"`
	ServiceAccount named  `json:"serviceaccount"`
	Pod            *named `json:"pod,omitempty"`
	Secret         *named `json:"secret,omitempty"`
}

type named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// issue signs a token. The standard claims need neither issuer nor times.
func (i *Issuer) issue(standard jwt.Claims, s subject, from, to time.Time) (string, error) {
	standard.Issuer = i.Name
	standard.IssuedAt, standard.NotBefore = jwt.NewNumericDate(from), jwt.NewNumericDate(from)
	standard.Expiry = jwt.NewNumericDate(to)
	return jwt.Signed(i.signer).Claims(standard).Claims(map[string]any{i.Claim: s}).Serialize()
}

// newSigner returns a signer with the algorithm of the key, and an id for it that
// is made from its public half.
func newSigner(key crypto.Signer) (jose.Signer, error) {
	algorithm, err := algorithmOf(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	id := base64.RawURLEncoding.EncodeToString(sum[:])
	return jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
}

func algorithmOf(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
	}
	return "", fmt.Errorf("a key of type %T does not sign tokens", key)
}

// readPrivateKey returns the first private key in a PEM file; nil when there is none.
func readPrivateKey(file string) (crypto.Signer, error) {
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
