package keys

import (
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/seal"
)

// TestFurtherReadsDoNotPostpone: a key that was made in the future is replaced when the interval has
// passed since this hub first read it, however often it reads the keys.
func TestFurtherReadsDoNotPostpone(t *testing.T) {
	const every, day = 2 * time.Hour, 24 * time.Hour
	now := time.Now()
	first := now.Add(-90 * time.Minute)
	for name, c := range map[string]struct {
		made time.Time
		most time.Duration
	}{
		"ahead":         {now.Add(day), 30 * time.Minute},
		"a little late": {now.Add(-100 * time.Minute), 20 * time.Minute},
		"behind":        {now.Add(-day), every - day},
	} {
		m, err := seal.NewMaster(seal.NewSecret())
		if err != nil {
			t.Fatal(err)
		}
		var r *ring
		for at := first; !at.After(now); at = at.Add(10 * time.Minute) {
			r = &ring{held: []heldKey{r.hold(m, stored{Made: c.made}, at)}}
		}
		if left := r.held[0].left(every); left > c.most || left < c.most-10*time.Minute {
			t.Errorf("%s: %v are left, want %v", name, left, c.most)
		}
	}
}
