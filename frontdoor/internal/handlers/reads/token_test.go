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
	want := position{Revision: 42, After: "default/x", List: list, origin: ours.origin()}
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

// TestTokensExpire: a token expires where its list began, by the time that has passed there. Other front doors, and
// one that has restarted, know nothing of its age, whatever their clocks say.
func TestTokensExpire(t *testing.T) {
	key := NewKey()
	ours, err := NewTokens(key)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewTokens(key)
	if err != nil {
		t.Fatal(err)
	}
	const lifetime = 5 * time.Minute
	for name, c := range map[string]struct {
		passed, jumped time.Duration // since the list began, and how far the clock of the day has moved besides
		want           bool
	}{
		"young":          {lifetime - time.Second, 0, false},
		"old":            {lifetime + time.Second, 0, true},
		"clock forward":  {time.Second, time.Hour, false},
		"clock backward": {lifetime + time.Second, -time.Hour, true},
	} {
		o := ours.origin()
		o.At -= int64(c.passed)
		o.Issued -= int64((c.passed + c.jumped) / time.Second)
		token, err := ours.encode(position{Revision: 1, origin: o})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []*Tokens{ours, other} {
			p, err := at.decode(token, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := at.expired(p.origin, lifetime); got != (c.want && at == ours) {
				t.Errorf("%s: expired %v; where it began: %v", name, got, at == ours)
			}
			if next, err := at.encode(position{Revision: 1, origin: p.origin}); err != nil {
				t.Fatal(err)
			} else if p, err := ours.decode(next, nil); err != nil || ours.expired(p.origin, lifetime) != c.want {
				t.Errorf("%s, after another chunk: %v", name, err)
			}
		}
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
