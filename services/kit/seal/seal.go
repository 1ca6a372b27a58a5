// Package seal encrypts and signs the messages on the bus: each is encrypted for the
// readers of its subject and signed by the hub. It defines the format of a sealed message
// and how keys are derived from the master secret that the hubs share. It does not store,
// distribute or rotate keys, and does no I/O. It serves "Watch procedure" of the
// specification.
//
// A sealed message is
//
//	version (1) | key id (8) | nonce (12) | ciphertext of content and signature (64) | tag (16)
//
// The ciphertext is AES-256-GCM under a key of the subject, with version, key id
// and subject as additional data. The signature is Ed25519 over the SHA-256 of
// subject, version, key id, nonce and content. Every subject has its own key, so that a
// reader of one type cannot open messages of another. Readers share the key of a subject,
// so only the signature proves that the hub is the sender.
//
// A seal does not protect the order of messages: changes have revisions, and each names the
// previous one, so that receivers detect messages that are repeated, late or missing.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

const (
	version = 1
	// IDBytes is the length of a key id.
	IDBytes = 8
	// SecretBytes is the length of a master secret and of the keys derived from it.
	SecretBytes = 32

	nonceBytes  = 12
	headerBytes = 1 + IDBytes + nonceBytes
	tagBytes    = 16
	// Overhead is the size of a sealed message minus that of its content.
	Overhead = headerBytes + ed25519.SignatureSize + tagBytes
)

// The errors of opening a message.
var (
	ErrMalformed = errors.New("not a sealed message")
	ErrForged    = errors.New("not sealed by the hub for this subject")
)

// ID identifies a master and all keys derived from it.
type ID [IDBytes]byte

// Master is the secret that hubs share, from which all other keys are derived.
type Master struct {
	secret []byte
	id     ID
	signer ed25519.PrivateKey
}

// NewSecret returns the secret of a new Master.
func NewSecret() []byte {
	secret := make([]byte, SecretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// NewMaster returns the Master of a secret.
func NewMaster(secret []byte) (*Master, error) {
	if len(secret) != SecretBytes {
		return nil, fmt.Errorf("a secret of %d bytes, want %d", len(secret), SecretBytes)
	}
	m := &Master{secret: secret}
	id, err := m.derive("id", IDBytes)
	if err != nil {
		return nil, err
	}
	copy(m.id[:], id)
	seed, err := m.derive("signature", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	m.signer = ed25519.NewKeyFromSeed(seed)
	return m, nil
}

// derive derives a key for one purpose.
func (m *Master) derive(purpose string, length int) ([]byte, error) {
	return hkdf.Key(sha256.New, m.secret, nil, "portico bus 1 "+purpose, length)
}

// ID returns the ID of the master.
func (m *Master) ID() ID { return m.id }

// Public returns the key that verifies the signatures.
func (m *Master) Public() []byte { return []byte(m.signer.Public().(ed25519.PublicKey)) }

// Secret returns the key of a subject, which opens only its messages.
func (m *Master) Secret(subject string) ([]byte, error) {
	return m.derive("subject "+subject, SecretBytes)
}

// Sealer seals messages with one master. It is not safe for concurrent use.
type Sealer struct {
	master *Master
	aeads  map[string]cipher.AEAD // by subject
}

// NewSealer returns a Sealer.
func NewSealer(m *Master) *Sealer { return &Sealer{master: m, aeads: map[string]cipher.AEAD{}} }

// Master returns the master that the sealer seals with.
func (s *Sealer) Master() *Master { return s.master }

// Seal appends the sealed message to buffer, which must not overlap content. It may
// overwrite the memory after content, up to its capacity.
func (s *Sealer) Seal(buffer []byte, subject string, content []byte) ([]byte, error) {
	aead := s.aeads[subject]
	if aead == nil {
		secret, err := s.master.Secret(subject)
		if err != nil {
			return nil, err
		}
		if aead, err = newAEAD(secret); err != nil {
			return nil, err
		}
		s.aeads[subject] = aead
	}
	start := len(buffer)
	buffer = append(append(buffer, version), s.master.id[:]...)
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails
	buffer = append(buffer, nonce[:]...)
	header := buffer[start:]
	content = append(content, ed25519.Sign(s.master.signer, digest(header, subject, content))...)
	return aead.Seal(buffer, nonce[:], content, additional(header, subject)), nil
}

// Key opens the messages of one subject that were sealed with one master.
type Key struct {
	subject string
	aead    cipher.AEAD
	public  ed25519.PublicKey
}

// NewKey returns the Key of a subject from its secret and the hub's public key.
func NewKey(subject string, secret, public []byte) (*Key, error) {
	if len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("a public key of %d bytes, want %d", len(public), ed25519.PublicKeySize)
	}
	aead, err := newAEAD(secret)
	if err != nil {
		return nil, err
	}
	return &Key{subject: subject, aead: aead, public: public}, nil
}

// KeyID returns the key ID in a message, which is not verified.
func KeyID(message []byte) (ID, error) {
	if len(message) < Overhead || message[0] != version {
		return ID{}, ErrMalformed
	}
	return ID(message[1 : 1+IDBytes]), nil
}

// Open returns the content of a message, which is decrypted in place. Decryption, which is
// cheaper than the verification of the signature, comes first, so that forged messages
// cost little.
func (k *Key) Open(message []byte) ([]byte, error) {
	if len(message) < Overhead || message[0] != version {
		return nil, ErrMalformed
	}
	header, sealed := message[:headerBytes], message[headerBytes:]
	opened, err := k.aead.Open(sealed[:0], header[1+IDBytes:], sealed, additional(header, k.subject))
	if err != nil {
		return nil, ErrForged
	}
	end := len(opened) - ed25519.SignatureSize
	content, signature := opened[:end:end], opened[end:]
	if !ed25519.Verify(k.public, digest(header, k.subject, content), signature) {
		return nil, ErrForged
	}
	return content, nil
}

func newAEAD(secret []byte) (cipher.AEAD, error) {
	if len(secret) != SecretBytes {
		return nil, fmt.Errorf("a key of %d bytes, want %d", len(secret), SecretBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// additional returns the additional data of the AEAD: version, key ID and subject. The
// nonce is authenticated by the AEAD itself.
func additional(header []byte, subject string) []byte {
	return append(append(make([]byte, 0, 1+IDBytes+len(subject)), header[:1+IDBytes]...), subject...)
}

// digest returns the hash that the hub signs.
func digest(header []byte, subject string, content []byte) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "portico bus 1 %d %s", len(subject), subject)
	_, _ = h.Write(header)
	_, _ = h.Write(content)
	return h.Sum(nil)
}
