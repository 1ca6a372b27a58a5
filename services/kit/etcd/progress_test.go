package etcd

import (
	"testing"
	"time"
)

// TestPatience: a few watches are tried before they get more time, up to a bound.
func TestPatience(t *testing.T) {
	for stuck, want := range map[int]time.Duration{0: 3 * time.Second, 2: 3 * time.Second, 3: 6 * time.Second, 6: 12 * time.Second, 9: 24 * time.Second, 12: 24 * time.Second, 1 << 30: 24 * time.Second} {
		if got := Patience(stuck); got != want {
			t.Errorf("after %d watches: %v, want %v", stuck, got, want)
		}
	}
}
