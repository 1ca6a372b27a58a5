package responder

import (
	"crypto/x509"
	"log/slog"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/services/revocation"
)

// numbers is an authority that keeps the numbers of its lists.
type numbers struct {
	Authority
	all []int64
}

func (n *numbers) SignList(list *x509.RevocationList) ([]byte, error) {
	n.all = append(n.all, list.Number.Int64())
	return nil, nil
}

// state is a source of no revocations, at a time.
type state struct {
	Source
	asOf time.Time
}

func (s *state) Revocations() ([]revocation.Spec, time.Time) { return nil, s.asOf }

// TestNumbersIncrease: the number of a list is larger than that of each one before, also after the
// clock was set back, since clients keep the list with the largest number.
func TestNumbersIncrease(t *testing.T) {
	authority, source := &numbers{}, &state{}
	r := &Responder{Authority: authority, Source: source, Validity: time.Hour, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
	now := time.Now()
	for _, since := range []time.Duration{0, time.Second, -24 * time.Hour, -24 * time.Hour, time.Minute} {
		source.asOf = now.Add(since)
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
