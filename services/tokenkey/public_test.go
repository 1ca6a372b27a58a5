package tokenkey

import (
	"encoding/pem"
	"testing"
)

// FuzzPublicKeys parses key files: the result is never a private key.
func FuzzPublicKeys(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind string, content []byte) {
		key, err := publicKey(&pem.Block{Type: kind, Bytes: content})
		if _, private := key.(interface{ Public() any }); private && err == nil {
			t.Errorf("%s is a private key", kind)
		}
	})
}
