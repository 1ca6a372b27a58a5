package contact

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// member is an etcd that may hang or fail.
type member struct {
	clientv3.KV
	hangs, fails atomic.Bool
}

func (m *member) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if m.fails.Load() {
		return nil, errors.New("connection refused")
	}
	for m.hangs.Load() { // it ignores ctx
		pass(time.Millisecond)
	}
	return &clientv3.GetResponse{}, nil
}

// pass lets time pass, which a test in a bubble does not spend.
func pass(d time.Duration) { <-time.After(d) }

// TestSilence: etcd is away after it has not responded for patience, in whichever way, and back with its next response.
func TestSilence(t *testing.T) {
	for name, how := range map[string]func(*member, bool){
		"hangs": func(m *member, on bool) { m.hangs.Store(on) },
		"fails": func(m *member, on bool) { m.fails.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &member{}
				c := New(Config{KV: m, Log: slog.New(slog.DiscardHandler)})
				ctx, cancel := context.WithCancel(t.Context())
				go c.Run(ctx)
				pass(time.Minute)
				if c.Err() != nil {
					t.Fatal("away, although it responds")
				}
				how(m, true)
				pass(patience - every - soon)
				if c.Err() != nil {
					t.Error("away too soon")
				}
				pass(every + 3*soon)
				if c.Err() == nil {
					t.Error("not away")
				}
				how(m, false)
				pass(every)
				if c.Err() != nil || c.Losses() != 1 {
					t.Errorf("still away: %v, %d losses", c.Err(), c.Losses())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestOtherResponses: responses to other requests count.
func TestOtherResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{}
		m.hangs.Store(true)
		c := New(Config{KV: m, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		go c.Run(ctx)
		for range 100 {
			pass(patience / 2)
			if c.Heard(); c.Err() != nil {
				t.Fatal("away, although it responds to others")
			}
		}
		m.hangs.Store(false)
		pass(every)
		cancel()
		synctest.Wait()
	})
}

// TestALateProcessHearsNothing: steps that the process itself makes late are not silence of etcd, however late they are.
func TestALateProcessHearsNothing(t *testing.T) {
	var s silence
	now := int64(time.Hour)
	s.lasts(now, now)
	const heard = int64(time.Hour)
	for i := range int(patience/(2*step)) - 1 {
		now += int64(time.Hour)
		if took := s.lasts(heard, now); took >= patience {
			t.Fatalf("silent for %v after %d late steps", took, i+1)
		}
	}
	again := now
	if took := s.lasts(again, now); took != 0 {
		t.Errorf("silent for %v after a response", took)
	}
	for took := time.Duration(0); took < patience; {
		now += int64(step)
		before := took
		if took = s.lasts(again, now); took != before+step {
			t.Fatalf("silent for %v after %v and another step in time", took, before)
		}
	}
	now += int64(time.Hour)
	if took := s.lasts(now-int64(time.Minute), now); took != every {
		t.Errorf("silent for %v when the next request is sent late, want %v", took, every)
	}
}
