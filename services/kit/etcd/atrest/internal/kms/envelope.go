package kms

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	seedSize       = 32
	saltSize       = 32
	maxKeyID       = 1 << 10
	maxSeed        = 1 << 10  // of a seed as the plugin encrypted it
	maxAnnotations = 32 << 10 // names and values together
	maxHeader      = maxKeyID + maxSeed + 2*maxAnnotations
	// purpose separates the keys derived for values from other uses of a seed.
	purpose = "portico kms v2 value"
)

var (
	errForged  = errors.New("the value was not encrypted with this seed for this path, or it was changed")
	errGarbled = errors.New("the value has no valid KMS header")
)

// envelope is what the plugin returned for a seed. It is stored, in clear, with every value
// that the seed encrypts.
type envelope struct {
	keyID       string
	seed        []byte // as the plugin encrypted it
	annotations map[string][]byte
}

// check returns an error if the envelope exceeds the limits of the KMS v2 API.
func (e envelope) check() error {
	if len(e.seed) == 0 || len(e.seed) > maxSeed {
		return fmt.Errorf("ciphertext: it has %d bytes, and 1 to %d are allowed", len(e.seed), maxSeed)
	}
	if err := checkKeyID(e.keyID); err != nil {
		return err
	}
	size := 0
	for name, value := range e.annotations {
		size += len(name) + len(value)
		if size > maxAnnotations {
			return fmt.Errorf("annotations: they have more than %d bytes", maxAnnotations)
		}
		if err := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), name); len(err) != 0 {
			return err.ToAggregate()
		}
	}
	return nil
}

func checkKeyID(id string) error {
	if id == "" || len(id) > maxKeyID {
		return fmt.Errorf("key_id: it has %d bytes, and 1 to %d are allowed", len(id), maxKeyID)
	}
	return nil
}

// encode returns the header of values. Equal envelopes have equal headers.
func (e envelope) encode() []byte {
	var header []byte
	add := func(part []byte) {
		header = binary.AppendUvarint(header, uint64(len(part)))
		header = append(header, part...)
	}
	add([]byte(e.keyID))
	add(e.seed)
	for _, name := range slices.Sorted(maps.Keys(e.annotations)) {
		add([]byte(name))
		add(e.annotations[name])
	}
	return header
}

// decodeHeader is the reverse of encode.
func decodeHeader(header []byte) (envelope, error) {
	var parts [][]byte
	for len(header) > 0 {
		part, rest, ok := cut(header)
		if !ok {
			return envelope{}, errGarbled
		}
		parts, header = append(parts, part), rest
	}
	if len(parts) < 2 || len(parts)%2 != 0 {
		return envelope{}, errGarbled
	}
	e := envelope{keyID: string(parts[0]), seed: parts[1]}
	if len(parts) > 2 {
		e.annotations = map[string][]byte{}
	}
	for i := 2; i < len(parts); i += 2 {
		e.annotations[string(parts[i])] = parts[i+1]
	}
	if err := e.check(); err != nil {
		return envelope{}, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return e, nil
}

// cut returns the first part of b, which begins with its length, and what follows.
func cut(b []byte) (part, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return b[n:end], b[end:], true
}

// split returns the header of a sealed value and what follows.
func split(sealed []byte) (header, rest []byte, err error) {
	header, rest, ok := cut(sealed)
	if !ok || len(header) > maxHeader {
		return nil, nil, errGarbled
	}
	return header, rest, nil
}

// seal encrypts a value with its own key, derived from the seed. The header and about are authenticated.
func seal(seed, header, plain, about []byte) ([]byte, error) {
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // it never fails
	aead, err := derive(seed, salt[:])
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, 0, binary.MaxVarintLen32+len(header)+saltSize+len(plain)+aead.Overhead())
	sealed = binary.AppendUvarint(sealed, uint64(len(header)))
	sealed = append(append(sealed, header...), salt[:]...)
	return aead.Seal(sealed, nil, plain, bind(header, about)), nil
}

// unseal is the reverse of seal. sealed is what follows the header.
func unseal(seed, header, sealed, about []byte) ([]byte, error) {
	if len(sealed) < saltSize {
		return nil, errForged
	}
	aead, err := derive(seed, sealed[:saltSize])
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed[saltSize:], bind(header, about))
	if err != nil {
		return nil, errForged
	}
	return plain, nil
}

func derive(seed, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, seed, salt, purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bind returns the authenticated data of a value.
func bind(header, about []byte) []byte {
	bound := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen32+len(header)+len(about)), uint64(len(header)))
	return append(append(bound, header...), about...)
}
