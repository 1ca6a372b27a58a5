package seal

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
)

const subject = "changes.core.secrets"

func newMaster(t testing.TB) *Master {
	t.Helper()
	m, err := NewMaster(NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// opener returns the key that a reader of a subject gets.
func opener(t testing.TB, m *Master, subject string) *Key {
	t.Helper()
	secret, err := m.Secret(subject)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKey(subject, secret, m.Public())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealed(t testing.TB, m *Master, subject, content string) []byte {
	t.Helper()
	message, err := NewSealer(m).Seal(nil, subject, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestOpensWhatWasSealed(t *testing.T) {
	m := newMaster(t)
	sealer := NewSealer(m)
	for _, content := range []string{"", "a", string(bytes.Repeat([]byte("long "), 100_000))} {
		message, err := sealer.Seal([]byte("before"), subject, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		message = message[len("before"):]
		if len(message) != len(content)+Overhead {
			t.Errorf("%d bytes for %d", len(message), len(content))
		}
		if len(content) > 100 && bytes.Contains(message, []byte("long")) {
			t.Error("the message shows its content")
		}
		if id, err := KeyID(message); id != m.ID() || err != nil {
			t.Errorf("key %x, %v", id, err)
		}
		if got, err := opener(t, m, subject).Open(message); string(got) != content || err != nil {
			t.Errorf("opened %.20q, %v", got, err)
		}
	}
}

// TestTheSecretIsAllThatHubsShare: two hubs with the same secret open each other's messages.
func TestTheSecretIsAllThatHubsShare(t *testing.T) {
	secret := NewSecret()
	one, err := NewMaster(secret)
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewMaster(bytes.Clone(secret))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opener(t, two, subject).Open(sealed(t, one, subject, "content")); err != nil || one.ID() != two.ID() {
		t.Errorf("%v; keys %x and %x", err, one.ID(), two.ID())
	}
	if one.ID() == newMaster(t).ID() {
		t.Error("two secrets have one id")
	}
}

func TestRefusesWhatTheHubDidNotSeal(t *testing.T) {
	m := newMaster(t)
	message := sealed(t, m, subject, "content")
	check := func(what string, k *Key, message []byte) {
		t.Helper()
		if got, err := k.Open(bytes.Clone(message)); !errors.Is(err, ErrForged) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: opened %q, %v", what, got, err)
		}
	}
	key := opener(t, m, subject)
	check("another subject", opener(t, m, "changes.core.pods"), message)
	check("another master", opener(t, newMaster(t), subject), message)
	for n := range message {
		check(fmt.Sprintf("cut to %d bytes", n), key, message[:n])
		changed := bytes.Clone(message)
		changed[n] ^= 1
		check(fmt.Sprintf("with byte %d changed", n), key, changed)
	}
	check("with a byte more", key, append(bytes.Clone(message), 0))
	check("in clear", key, []byte("content"))

	// With the key of another subject the message does not open: the subject is
	// authenticated too.
	secret, err := m.Secret(subject)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := NewKey("changes.core.pods", secret, m.Public())
	if err != nil {
		t.Fatal(err)
	}
	check("the same key under another subject", moved, message)
}

// TestReadersCannotForge: readers of a subject have its key, but cannot sign as the hub.
func TestReadersCannotForge(t *testing.T) {
	m := newMaster(t)
	secret, err := m.Secret(subject)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := newAEAD(secret)
	if err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := opener(t, m, subject)
	genuine := sealed(t, m, subject, "content")
	header := bytes.Clone(genuine[:headerBytes])
	opened, err := key.aead.Open(nil, header[1+IDBytes:], genuine[headerBytes:], additional(header, subject))
	if err != nil {
		t.Fatal(err)
	}
	forged := []byte("forged.")
	for _, signature := range [][]byte{
		nil, make([]byte, ed25519.SignatureSize), ed25519.Sign(private, digest(header, subject, forged)),
		opened[len("content"):], // of a genuine message
	} {
		message := aead.Seal(bytes.Clone(header), header[1+IDBytes:], slices.Concat(forged, signature), additional(header, subject))
		if got, err := key.Open(message); err == nil {
			t.Errorf("opened %q", got)
		}
	}
}

func TestKeysOfWrongLength(t *testing.T) {
	m := newMaster(t)
	if _, err := NewMaster(nil); err == nil {
		t.Error("a master without a secret")
	}
	if _, err := NewKey(subject, nil, m.Public()); err == nil {
		t.Error("a key without a secret")
	}
	if _, err := NewKey(subject, NewSecret(), nil); err == nil {
		t.Error("a key without a public key")
	}
}

func FuzzOpen(f *testing.F) {
	m, err := NewMaster(bytes.Repeat([]byte{7}, SecretBytes))
	if err != nil {
		f.Fatal(err)
	}
	key := opener(f, m, subject)
	genuine := sealed(f, m, subject, "content")
	f.Add(genuine)
	f.Add(genuine[:Overhead])
	f.Add([]byte{version})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		id, idErr := KeyID(message)
		content, err := key.Open(bytes.Clone(message))
		if err == nil && string(content) != "content" { // all that was ever sealed
			t.Errorf("opened %q", content)
		}
		if err == nil && (idErr != nil || id != m.ID()) {
			t.Errorf("opened a message of key %x, %v", id, idErr)
		}
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	m := newMaster(b)
	sealer, key := NewSealer(m), opener(b, m, subject)
	for _, size := range []int{300, 2600, 256 << 10} {
		content, buffer := make([]byte, size), []byte(nil)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				var err error
				if buffer, err = sealer.Seal(buffer[:0], subject, content); err == nil {
					_, err = key.Open(buffer)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
