package authn_test

import (
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// TestUnreadableRevocation: what was known of a Revocation stays in force when it can no longer be read; one of which
// nothing is known may be about anybody, and only members of system:masters are let in, who can repair it.
func TestUnreadableRevocation(t *testing.T) {
	cluster := fake.New(t)
	cluster.Put(t, revocations, `{"metadata":{"name":"r"},"spec":{"user":"jane","reason":"gone"}}`)
	flags := "--token-auth-file=" + tokens(t, "one,jane,1", "two,joe,2", "three,root,3,system:masters")
	key := resource.Key{GroupResource: revocations, Name: "r"}
	ask := func(a services.Authn, token string, notOlderThan int64) error {
		_, err := a.Authenticate(t.Context(), services.Credentials{BearerToken: token, NotOlderThan: notOlderThan})
		return err
	}
	before, err := startOn(t, cluster, flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(before, "one", 0); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Fatal(err)
	}
	revision := cluster.Damage(key)
	if err := ask(before, "one", revision); !services.IsReason(err, services.ReasonUnauthorized) {
		t.Errorf("revoked: %v", err)
	}
	if err := ask(before, "two", revision); err != nil {
		t.Errorf("another user: %v", err)
	}
	after, err := startOn(t, cluster, flags)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"one", "two"} {
		if at, ok := services.UnreadableRevision(ask(after, token, revision)); !ok || at != revision {
			t.Errorf("after a restart: %v", ask(after, token, revision))
		}
	}
	if err := ask(after, "three", revision); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	for until := time.Now().Add(20 * time.Second); ask(after, "two", cluster.Delete(key)) != nil; {
		if time.Now().After(until) {
			t.Fatal("it is deleted, and still counts")
		}
	}
}
