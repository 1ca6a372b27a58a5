package contracttest

import (
	"reflect"
	"testing"

	"github.com/portico-platform/portico/services"
)

// AuthnExample holds the credentials that the implementation under test is set up for.
type AuthnExample struct {
	Valid services.Credentials // of User
	User  services.UserInfo
	// Invalid credentials are present but not valid.
	Invalid services.Credentials
}

// Authn is the conformance suite of services.Authn.
func Authn(t *testing.T, open func(*testing.T) services.Authn, example AuthnExample) {
	authn := open(t)
	t.Run("valid credentials give their user", func(t *testing.T) {
		got, err := authn.Authenticate(t.Context(), example.Valid)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.User, example.User) {
			t.Errorf("got user %+v, want %+v", got.User, example.User)
		}
	})
	t.Run("invalid credentials are unauthorized", func(t *testing.T) {
		_, err := authn.Authenticate(t.Context(), example.Invalid)
		wantReason(t, err, services.ReasonUnauthorized)
	})
	t.Run("a token that is not valid UTF-8 is unauthorized", func(t *testing.T) {
		_, err := authn.Authenticate(t.Context(), services.Credentials{BearerToken: "\xff\xfe\x00"})
		wantReason(t, err, services.ReasonUnauthorized)
	})
	t.Run("a certificate that cannot be parsed is unauthorized", func(t *testing.T) {
		_, err := authn.Authenticate(t.Context(), services.Credentials{Certificates: [][]byte{[]byte("not DER")}})
		wantReason(t, err, services.ReasonUnauthorized)
	})
}
