package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/resource"
)

// overLink returns a client of a store, and the link between them.
func overLink(t *testing.T, s *Store) (carried services.Store, link *lossy.Proxy) {
	t.Helper()
	carried = kittest.RemoteOver(t, contract.Store, services.Store(s), func(address string) string {
		link = lossy.New(t, address)
		return link.Address()
	})
	return carried, link
}

// TestAnswersLostOnTheWayFromTheStore breaks the connection between the store and its
// client in several ways: the client determines the outcome.
func TestAnswersLostOnTheWayFromTheStore(t *testing.T) {
	client := openEtcd(t)
	direct := replica(t, client)
	carried, link := overLink(t, replica(t, client))
	b := lossyBench{etcd: client, link: link, other: direct}
	for verb, w := range storeWrites(t) {
		for _, kind := range []lossy.Kind{lossy.Answer, lossy.Request, lossy.Late} {
			t.Run(fmt.Sprintf("%s, %d", verb, kind), func(t *testing.T) {
				// Long enough that the request exceeds the initial flow control window.
				name := fmt.Sprintf("%s-%d-%0200d", strings.ReplaceAll(verb, " ", "-"), kind, 0)
				o := services.Object{Key: pod(name)}
				if w.before > 0 {
					o = create(t, direct, name)
				}
				if _, err := carried.Revision(t.Context(), pod("").GroupResource); err != nil { // establishes the connection
					t.Fatal(err)
				}
				link.Lose(lossy.Fault{Least: 200, Kind: kind, Hold: lostHold})
				got, err := w.do(carried, o)
				if link.Armed() {
					t.Fatal("nothing was lost")
				}
				if kind == lossy.Answer {
					if err != nil || got.Revision <= o.Revision || b.version(t, name) != w.after {
						t.Errorf("answered %+v, %v; written %d times", got, err, b.version(t, name))
					}
					return
				}
				if s := services.AsStatus(err); !services.IsReason(err, services.ReasonServiceUnavailable) || s.Details.RetryAfterSeconds == 0 {
					t.Errorf("the store did not get the request: %v", err)
				}
				if err := link.Deliver(); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					if n := b.version(t, name); n != w.before {
						t.Fatalf("it was done nevertheless: written %d times", n)
					}
				}
				if _, err := w.do(carried, o); err != nil {
					t.Errorf("asked for again: %v", err)
				}
			})
		}
	}
}

// TestOutcomesOfQuietTypes: the outcome of a write whose request is lost is determined also if the client has not
// read or written the type since a compaction, or never.
func TestOutcomesOfQuietTypes(t *testing.T) {
	client := openEtcd(t)
	direct := replica(t, client)
	carried, link := overLink(t, replica(t, client))
	other := resource.GroupResource{Resource: "configmaps"}
	if _, err := carried.Revision(t.Context(), other); err != nil { // establishes the connection
		t.Fatal(err)
	}
	compact(t, client, create(t, direct, "a").Revision)
	name := fmt.Sprintf("lost-%0200d", 0)
	link.Lose(lossy.Fault{Least: 200, Kind: lossy.Request, Hold: lostHold})
	_, err := carried.Create(t.Context(), services.CreateRequest{Key: pod(name), Content: content(name, "1")})
	if link.Armed() {
		t.Fatal("nothing was lost")
	}
	if s := services.AsStatus(err); !services.IsReason(err, services.ReasonServiceUnavailable) || s.Details.RetryAfterSeconds == 0 {
		t.Errorf("the store did not get the request: %v", err)
	}
}
