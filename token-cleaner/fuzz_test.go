package tokencleaner

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clock "k8s.io/utils/clock/testing"
)

// FuzzToken parses Secrets of bootstrap tokens: a signing token is complete, not
// expired, and has the name of its id.
func FuzzToken(f *testing.F) {
	s := &signer{clock: clock.NewFakePassiveClock(time.Now())}
	f.Fuzz(func(t *testing.T, object []byte) {
		secret := &unstructured.Unstructured{}
		if json.Unmarshal(object, &secret.Object) != nil || secret.Object == nil {
			return
		}
		token, ok := s.token(secret)
		if ok && (len(token.id) != 6 || len(token.secret) != 16 || secret.GetName() != "bootstrap-token-"+token.id) {
			t.Errorf("%s signs as %+v", object, token)
		}
		signature, err := detached("content", token.id, s.key(token))
		if err != nil || strings.Count(signature, ".") != 2 {
			t.Errorf("got signature %q, %v", signature, err)
		}
	})
}
