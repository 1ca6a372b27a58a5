package authn_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/revocation"
)

var revocations = resource.GroupResource{Group: revocation.Group, Resource: revocation.Resource}

// TestRevocations revokes each kind of credentials by everything that names it, and takes the
// Revocation back. Callers that know its revision see it at once, others soon.
func TestRevocations(t *testing.T) {
	ca, cluster := newAuthority(t), fake.New(t)
	a, err := startOn(t, cluster, "--client-ca-file="+ca.file, "--token-auth-file="+tokens(t, `secret,jane,7,ops`, `other,joe,8,dev`))
	if err != nil {
		t.Fatal(err)
	}
	token, certificate := services.Credentials{BearerToken: "secret"}, services.Credentials{Certificates: ca.client(t, "carl", "ops")}
	known, err := a.Authenticate(t.Context(), certificate)
	if err != nil {
		t.Fatal(err)
	}
	for spec, c := range map[string]struct{ revoked, kept services.Credentials }{
		`"user":"jane"`: {token, certificate},
		`"user":"carl"`: {certificate, token},
		`"group":"ops"`: {token, services.Credentials{BearerToken: "other"}},
		`"serial":"` + known.Credential.Serial + `"`:                                               {certificate, token},
		`"keyID":"` + known.Credential.KeyID + `"`:                                                 {certificate, token},
		`"group":"ops","issuedBefore":"2000-01-01T00:00:00Z"`:                                      {token, certificate}, // of a token it is not known
		`"user":"jane","until":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano) + `"`: {token, certificate},
	} {
		revision := cluster.Put(t, revocations, fmt.Sprintf(`{"metadata":{"name":"r"},"spec":{%s,"reason":"test"}}`, spec))
		c.revoked.NotOlderThan, c.kept.NotOlderThan = revision, revision
		if _, err := a.Authenticate(t.Context(), c.revoked); !services.IsReason(err, services.ReasonUnauthorized) {
			t.Errorf("%s: %v", spec, err)
		}
		if _, err := a.Authenticate(t.Context(), c.kept); err != nil {
			t.Errorf("%s, other credentials: %v", spec, err)
		}
		cluster.Delete(resource.Key{GroupResource: revocations, Name: "r"})
		c.revoked.NotOlderThan = 0
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, err = a.Authenticate(t.Context(), c.revoked); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: after its Revocation was deleted: %v", spec, err)
			}
		}
	}
}

// TestRevocationsCanBeTurnedOff: administrators who have revoked themselves get in again.
func TestRevocationsCanBeTurnedOff(t *testing.T) {
	cluster := fake.New(t)
	cluster.Put(t, revocations, `{"metadata":{"name":"r"},"spec":{"group":"system:masters","reason":"oops"}}`)
	flags := []string{"--token-auth-file=" + tokens(t, "one,jane,1,system:masters")}
	for _, lookup := range []bool{true, false} {
		a, err := startOn(t, cluster, append(flags, fmt.Sprintf("--revocation-lookup=%v", lookup))...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Authenticate(t.Context(), services.Credentials{BearerToken: "one"})
		if lookup != services.IsReason(err, services.ReasonUnauthorized) || !lookup && err != nil {
			t.Errorf("--revocation-lookup=%v: %v", lookup, err)
		}
	}
}
