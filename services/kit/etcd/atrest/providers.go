package atrest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/nacl/secretbox"
)

// errForged means that a value was not encrypted with this key at this path.
var errForged = errors.New("the value was not encrypted with this key for this path, or it was changed")

// sealer encrypts values with one key. about is authenticated, and not part of the result.
type sealer interface {
	seal(plain, about []byte) ([]byte, error)
	open(sealed, about []byte) ([]byte, error)
	// stale reports whether seal would encrypt in another way than a value of this sealer.
	stale(sealed []byte) bool
}

// fixed is embedded by sealers that encrypt all values in the same way.
type fixed struct{}

func (fixed) stale([]byte) bool { return false }

// newSealer returns the sealer of a provider. The secret has one of the sizes of secretSizes.
func newSealer(provider string, secret []byte) (sealer, error) {
	switch provider {
	case "aescbc":
		return newCBC(secret)
	case "aesgcm":
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		return gcm{aead: aead}, err
	}
	return box{key: [32]byte(secret)}, nil
}

// secretSizes returns the sizes in bytes of a provider's secrets.
func secretSizes(provider string) []int {
	if provider == "secretbox" {
		return []int{32}
	}
	return []int{16, 24, 32}
}

// gcm is AES-GCM with random nonces.
type gcm struct {
	fixed
	aead cipher.AEAD
}

func (g gcm) seal(plain, about []byte) ([]byte, error) {
	return g.aead.Seal(nil, nil, plain, about), nil
}

func (g gcm) open(sealed, about []byte) ([]byte, error) {
	plain, err := g.aead.Open(nil, nil, sealed, about)
	if err != nil {
		return nil, errForged
	}
	return plain, nil
}

// cbc is AES-CBC with PKCS #7 padding, followed by an HMAC. CBC alone would let whoever
// writes to etcd change values.
type cbc struct {
	fixed
	block cipher.Block
	mac   []byte
}

func newCBC(secret []byte) (sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "portico aescbc v1 encryption", len(secret))
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Key(sha256.New, secret, nil, "portico aescbc v1 authentication", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	return cbc{block: block, mac: mac}, err
}

func (c cbc) seal(plain, about []byte) ([]byte, error) {
	const size = aes.BlockSize
	padding := size - len(plain)%size
	end := size + len(plain) + padding
	sealed := make([]byte, end, end+sha256.Size)
	_, _ = rand.Read(sealed[:size]) // it never fails
	copy(sealed[size:], plain)
	for i := size + len(plain); i < end; i++ {
		sealed[i] = byte(padding)
	}
	cipher.NewCBCEncrypter(c.block, sealed[:size]).CryptBlocks(sealed[size:], sealed[size:])
	return append(sealed, c.sum(sealed, about)...), nil
}

func (c cbc) open(sealed, about []byte) ([]byte, error) {
	const size = aes.BlockSize
	end := len(sealed) - sha256.Size
	if end < 2*size || end%size != 0 || !hmac.Equal(sealed[end:], c.sum(sealed[:end], about)) {
		return nil, errForged
	}
	plain := make([]byte, end-size)
	cipher.NewCBCDecrypter(c.block, sealed[:size]).CryptBlocks(plain, sealed[size:end])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > size {
		return nil, errForged
	}
	return plain[:len(plain)-padding], nil
}

// sum authenticates the initialization vector, the encrypted value and about.
func (c cbc) sum(sealed, about []byte) []byte {
	hash := hmac.New(sha256.New, c.mac)
	hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(about))))
	hash.Write(about)
	hash.Write(sealed)
	return hash.Sum(nil)
}

// box is NaCl's secretbox with random nonces. It has no authenticated data, so the hash of
// about is encrypted with the value.
type box struct {
	fixed
	key [32]byte
}

const nonceSize = 24

func (b box) seal(plain, about []byte) ([]byte, error) {
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	bound := sha256.Sum256(about)
	return secretbox.Seal(nonce[:], append(bound[:], plain...), &nonce, &b.key), nil
}

func (b box) open(sealed, about []byte) ([]byte, error) {
	if len(sealed) < nonceSize {
		return nil, errForged
	}
	plain, ok := secretbox.Open(nil, sealed[nonceSize:], (*[nonceSize]byte)(sealed[:nonceSize]), &b.key)
	bound := sha256.Sum256(about)
	if !ok || len(plain) < len(bound) || !hmac.Equal(plain[:len(bound)], bound[:]) {
		return nil, errForged
	}
	return plain[len(bound):], nil
}
