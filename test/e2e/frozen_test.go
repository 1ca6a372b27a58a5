package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// frozenFor is how long a replica is frozen: longer than the breaker needs to give it up.
	frozenFor = 4 * time.Second
	// hedgedWithin is less than the breaker needs. What requests really take is in the log of
	// the test.
	hedgedWithin = 2 * time.Second
	// freezes is how many times a replica is frozen at most until all requests are as quick: on a
	// busy machine some are slow for another reason, and without hedges some are each time.
	freezes = 3
	// rejoined is more than the front door needs to connect to a replica that goes on.
	rejoined = 5 * time.Second
)

// TestFrozenReplicas freezes one of two replicas of authz and of the store while clients read
// what the front door has neither decided nor copied before. The other replica answers, long
// before the frozen one is given up.
func TestFrozenReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts ten processes")
	}
	s := newSuite(t, vocabulary.K8s())
	s.add(t, "store", "store-2")
	s.add(t, "authz", "authz-2")
	for _, p := range programs() {
		if !p.offer && len(p.peers) == 0 {
			continue
		}
		s.start(t, p)
		if p.name == "store" || p.name == "authz" {
			p.replica = p.name + "-2"
			s.start(t, p)
		}
	}
	c := s.connect(t, "frontdoor")
	for i, frozen := range []string{"authz-2", "store-2"} {
		t.Run(frozen, func(t *testing.T) {
			for n := range freezes {
				if readWhileFrozen(t, s, c, frozen, i*freezes+n) <= hedgedWithin {
					return
				}
				wait(t, rejoined)
			}
			t.Errorf("each time a request took more than %v", hedgedWithin)
		})
	}
}

// readWhileFrozen returns how long the slowest of many requests took.
func readWhileFrozen(t *testing.T, s *suite, c *cluster.Cluster, frozen string, run int) (slowest time.Duration) {
	t.Helper()
	process := s.processes[frozen].cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Signal(syscall.SIGCONT) }()
	end := time.Now().Add(frozenFor)
	var mu sync.Mutex
	requests := 0
	var group sync.WaitGroup
	for client := range 8 {
		group.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				// Nobody has decided about this user, and a list in chunks is the store's.
				began := time.Now()
				got := c.Ask(t, cluster.Request{Path: "/api/v1/namespaces/default/configmaps?limit=1",
					Header: http.Header{"Impersonate-User": {fmt.Sprintf("user-%d-%d-%d", run, client, i)}, "Impersonate-Group": {"system:masters"}}})
				took := time.Since(began)
				mu.Lock()
				requests++
				slowest = max(slowest, took)
				mu.Unlock()
				if got.Code != http.StatusOK {
					t.Errorf("%d after %v: %s", got.Code, took, got.Body)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%s was frozen for %v: %d requests, the slowest took %v", frozen, frozenFor, requests, slowest)
	return slowest
}
