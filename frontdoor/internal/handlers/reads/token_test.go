package reads

import (
	"bytes"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

func TestTokensAreSealed(t *testing.T) {
	key := NewKey()
	ours, err := NewTokens(key)
	if err != nil {
		t.Fatal(err)
	}
	list := []byte("a list")
	want := position{Revision: 42, After: "default/x", List: list, Issued: time.Now().Unix()}
	token, err := ours.encode(want)
	if err != nil {
		t.Fatal(err)
	}
	replica, _ := NewTokens(key)
	got, err := replica.decode(token, list)
	if err != nil || got.Revision != want.Revision || got.After != want.After || !bytes.Equal(got.List, list) {
		t.Errorf("another replica read %+v, %v", got, err)
	}
	stranger, _ := NewTokens(NewKey())
	foreign, _ := stranger.encode(want)
	for what, bad := range map[string]string{
		"empty": "", "not base64": "%%%", "cut": token[:len(token)-3], "changed": "A" + token[1:], "of another service": foreign,
	} {
		if bad == token {
			continue
		}
		if _, err := ours.decode(bad, list); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("a token that is %s: got %v, want BadRequest", what, err)
		}
	}
	if _, err := ours.decode(token, []byte("another list")); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("a token of another list: got %v, want BadRequest", err)
	}
}

func TestTokensExpire(t *testing.T) {
	p := position{Issued: 1000}
	if p.expired(time.Unix(1299, 0), 5*time.Minute) || !p.expired(time.Unix(1301, 0), 5*time.Minute) {
		t.Error("a token lives five minutes, no more and no less")
	}
}

// FuzzDecodeToken searches for forged tokens that are accepted.
func FuzzDecodeToken(f *testing.F) {
	ours, err := NewTokens(NewKey())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("bm90LWEtdG9rZW4")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := ours.decode(token, nil); err == nil {
			t.Errorf("%q was taken for a token", token)
		}
	})
}
