package authn

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
)

// history is a store at one revision, with a Revocation of one user.
type history struct {
	services.Reader
	revision int64
	user     string
	lists    int
}

func (h *history) List(_ context.Context, r services.ListRequest) (services.Page, error) {
	h.lists++
	if r.Read.Mode == services.NotOlderThan && r.Read.Revision > h.revision {
		return services.Page{}, services.FutureRevision(r.Read.Revision, h.revision)
	}
	object := services.Object{JSON: []byte(`{"spec":{"user":"` + h.user + `","reason":"test"}}`)}
	return services.Page{Revision: h.revision, Objects: []services.Object{object}}, nil
}

// TestRevocationsAfterARestore: an older list does not replace a newer one, unless etcd was restored;
// callers with revisions of the future get an answer, without a read for each.
func TestRevocationsAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &history{revision: 100, user: "jane"}
		r := &revocations{store: store, log: slog.New(slog.DiscardHandler)}
		poll := func() {
			t.Helper()
			if err := r.read(t.Context(), services.Read{Mode: services.AnyRevision}); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when, user string, notOlderThan int64) {
			t.Helper()
			for name, want := range map[string]bool{"jane": user == "jane", "joe": user == "joe"} {
				err := r.check(t.Context(), &services.Authentication{User: services.UserInfo{Name: name}}, notOlderThan)
				if services.IsReason(err, services.ReasonUnauthorized) != want || !want && err != nil {
					t.Errorf("%s: %s: %v", when, name, err)
				}
			}
		}
		poll()
		check("at first", "jane", 0)
		store.revision, store.user = 50, "joe"
		poll()
		check("a replica that lags", "jane", 0)
		<-time.After(orderedFor)
		poll()
		check("after a restore", "joe", 0)
		store.lists = 0
		for range 10 {
			check("with a revision from before", "joe", 100)
		}
		if store.lists != 1 {
			t.Errorf("%d lists", store.lists)
		}
		store.revision, store.user = 200, "jane"
		<-time.After(renewRest)
		check("later", "jane", 150)
	})
}
