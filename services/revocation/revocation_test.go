package revocation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/revocation"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestRevokes(t *testing.T) {
	certificate := services.Authentication{User: services.UserInfo{Name: "jane", Groups: []string{"ops"}},
		Credential: services.Credential{Serial: "1f2e", KeyID: "ab01", Issued: now.Add(-time.Hour)}}
	token := services.Authentication{User: services.UserInfo{Name: "jane", Groups: []string{"ops"}},
		Credential: services.Credential{TokenID: "t1", KeyID: "Key-A", Issued: now.Add(-time.Hour)}}
	static := services.Authentication{User: services.UserInfo{Name: "jane", Groups: []string{"ops"}}}
	for spec, want := range map[string][3]bool{ // certificate, token, static
		`{"serial":"1f2e"}`:     {true, false, false},
		`{"serial":"00:1F:2E"}`: {true, false, false},
		`{"serial":"1f2e0"}`:    {false, false, false},
		`{"keyID":"AB:01"}`:     {true, false, false},
		`{"keyID":"Key-A"}`:     {false, true, false},
		`{"keyID":"key-a"}`:     {false, false, false},
		`{"tokenID":"t1"}`:      {false, true, false},
		`{"tokenID":"T1"}`:      {false, false, false},
		`{"user":"jane"}`:       {true, true, true},
		`{"user":"ops"}`:        {false, false, false},
		`{"group":"ops"}`:       {true, true, true},
		`{"group":"jane"}`:      {false, false, false},
		`{"user":"jane","issuedBefore":"2026-01-01T00:00:00Z"}`: {true, true, true},
		`{"user":"jane","issuedBefore":"2025-12-31T22:00:00Z"}`: {false, false, true},
		`{"group":"ops","issuedBefore":"2025-12-31T22:00:00Z"}`: {false, false, true},
		`{"user":"jane","until":"2026-01-01T00:00:01Z"}`:        {true, true, true},
		`{"user":"jane","until":"2026-01-01T00:00:00Z"}`:        {false, false, false},
		`{}`: {false, false, false},
	} {
		s, err := revocation.Decode([]byte(`{"spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range []services.Authentication{certificate, token, static} {
			if got := s.Revokes(&a, now); got != want[i] {
				t.Errorf("%s, credentials %d: %v, want %v", spec, i, got, want[i])
			}
			if got := revocation.NewSet([]revocation.Spec{s}).Revokes(&a, now) != nil; got != want[i] {
				t.Errorf("%s in a set, credentials %d: %v, want %v", spec, i, got, want[i])
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for spec, want := range map[string]string{
		`{"user":"jane","reason":"lost"}`:                                     "",
		`{"serial":"00:1f:2e","reason":"lost"}`:                               "",
		`{"group":"a","issuedBefore":"2026-01-01T00:00:00Z","reason":"lost"}`: "",
		`{"reason":"lost"}`:                                                   " " + services.CauseRequired,
		`{"user":"a","group":"b","reason":"lost"}`:                            " " + services.CauseRequired,
		`{"user":"a"}`:                     "reason " + services.CauseRequired,
		`{"user":"a","reason":" "}`:        "reason " + services.CauseRequired,
		`{"serial":"xyz","reason":"lost"}`: "serial " + services.CauseInvalid,
		`{"serial":"00","reason":"lost"}`:  "serial " + services.CauseInvalid,
		`{"serial":"1","issuedBefore":"2026-01-01T00:00:00Z","reason":"lost"}`: "issuedBefore " + services.CauseInvalid,
		`{"user":"system:anonymous","reason":"lost"}`:                          "user " + services.CauseInvalid,
		`{"group":"system:unauthenticated","reason":"lost"}`:                   "group " + services.CauseInvalid,
		`{"tokenID":"` + strings.Repeat("a", 1025) + `","reason":"lost"}`:      "tokenID " + services.CauseInvalid,
		`{"user":"a","reason":"` + strings.Repeat("a", 1025) + `"}`:            "reason " + services.CauseInvalid,
	} {
		s, err := revocation.Decode([]byte(`{"spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range s.Check() {
			got = append(got, p.Field+" "+p.Reason)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%.60s: %q, want %q", spec, got, want)
		}
	}
}

func TestSystem(t *testing.T) {
	for spec, want := range map[string]string{
		`{"user":"system:portico:lifecycle"}`: "users system:portico:lifecycle",
		`{"group":"system:masters"}`:          "groups system:masters",
		`{"user":"jane"}`:                     " ",
		`{"serial":"1"}`:                      " ",
	} {
		s, err := revocation.Decode([]byte(`{"spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if resource, name, ok := s.System(); resource+" "+name != want || ok != (want != " ") {
			t.Errorf("%s: %q %q %v", spec, resource, name, ok)
		}
	}
}
