package responder

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/services/revocation"
)

// numbers is an authority that keeps the numbers of its lists.
type numbers struct {
	Authority
	all []int64
}

func (n *numbers) SignList(list *x509.RevocationList) ([]byte, error) {
	n.all = append(n.all, list.Number.Int64())
	return []byte("list"), nil
}

// state is a source of no revocations, at a time.
type state struct {
	Source
	asOf time.Time
}

func (s *state) Revocations() ([]revocation.Spec, time.Time) { return nil, s.asOf }

func newResponder(t *testing.T) (*Responder, *numbers, *state, *clock.FakeClock) {
	t.Helper()
	authority, now := &numbers{}, clock.NewFakeClock(time.Now())
	source := &state{asOf: now.Now()}
	r := &Responder{Authority: authority, Source: source, Validity: time.Hour, Clock: now, Log: slog.New(slog.DiscardHandler)}
	if err := r.Init(prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	return r, authority, source, now
}

// TestNumbersIncrease: the number of a list is larger than that of each one before, also after the
// clock was set back, since clients keep the list with the largest number.
func TestNumbersIncrease(t *testing.T) {
	r, authority, source, now := newResponder(t)
	began := now.Now()
	for _, since := range []time.Duration{0, time.Second, -24 * time.Hour, -24 * time.Hour, time.Minute} {
		source.asOf = began.Add(since)
		now.SetTime(source.asOf)
		r.renew()
	}
	for i := 1; i < len(authority.all); i++ {
		if authority.all[i] <= authority.all[i-1] {
			t.Errorf("the numbers are %d", authority.all)
		}
	}
	if len(authority.all) != 5 {
		t.Errorf("%d lists", len(authority.all))
	}
}

// TestForwardJumps: when the clock is set forward, what has expired by it is renewed with the first
// request, and nothing is signed that would have expired already.
func TestForwardJumps(t *testing.T) {
	r, authority, source, now := newResponder(t)
	list := func() int {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ListPath, nil))
		return w.Code
	}
	if got := list(); got != http.StatusServiceUnavailable {
		t.Errorf("before the first list: got %d", got)
	}
	r.renew()
	if got := list(); got != http.StatusOK {
		t.Errorf("got %d", got)
	}
	now.Step(24 * time.Hour)
	source.asOf = now.Now()
	for range 3 {
		if got := list(); got != http.StatusOK {
			t.Errorf("after the jump: got %d", got)
		}
	}
	now.Step(24 * time.Hour)
	r.expired = rate.Sometimes{Every: 1} // as if time had passed
	for range 3 {
		if got := list(); got != http.StatusServiceUnavailable {
			t.Errorf("without a sign of life of the API: got %d", got)
		}
	}
	if len(authority.all) != 2 {
		t.Errorf("%d lists were signed", len(authority.all))
	}
}
