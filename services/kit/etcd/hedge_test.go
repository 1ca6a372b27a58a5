package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const deadline = 20 * time.Second

// scripted answers each Get as the next of its functions does, round robin.
type scripted struct {
	clientv3.KV
	gets  []func(context.Context) error
	calls atomic.Int64
}

func (m *scripted) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	n := m.calls.Add(1) - 1
	if err := m.gets[int(n)%len(m.gets)](ctx); err != nil {
		return nil, err
	}
	return &clientv3.GetResponse{Count: n}, nil
}

func (m *scripted) hedged(endpoints int) clientv3.KV {
	return hedged{m, func() []string { return make([]string, endpoints) }}
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func respond(context.Context) error { return nil }

var errRefused = errors.New("refused")

func refuse(context.Context) error { return errRefused }

func TestAHungMemberDoesNotDelayReads(t *testing.T) {
	m := &scripted{gets: []func(context.Context) error{hang, respond}}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	answer, err := m.hedged(2).Get(ctx, "key")
	if err != nil || answer.Count != 1 {
		t.Errorf("got %v, %v, want the response of the second member", answer, err)
	}
}

func TestAllMembersHang(t *testing.T) {
	m := &scripted{gets: []func(context.Context) error{hang}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxReads*hedgeAfter)
	defer cancel()
	if _, err := m.hedged(2).Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline's error", err)
	}
	if n := m.calls.Load(); n < 2 || n > maxReads {
		t.Errorf("%d requests", n)
	}
}

func TestErrorsAreNotHedged(t *testing.T) {
	m := &scripted{gets: []func(context.Context) error{refuse, respond}}
	if _, err := m.hedged(2).Get(t.Context(), "key"); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}

// TestOneEndpointIsAskedOnce: requests to an etcd in this process may ignore their context, and would
// accumulate while it hangs.
func TestOneEndpointIsAskedOnce(t *testing.T) {
	for endpoints := range 2 {
		m := &scripted{gets: []func(context.Context) error{hang, respond}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*hedgeAfter)
		_, err := m.hedged(endpoints).Get(ctx, "key")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || m.calls.Load() != 1 {
			t.Errorf("%d endpoints: %v after %d requests", endpoints, err, m.calls.Load())
		}
	}
}
