package extensions

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSlowExtensionsStarveNobody: while others send their documents without end, those of a healthy extension that is
// registered later are read.
func TestSlowExtensionsStarveNobody(t *testing.T) {
	var mu sync.Mutex
	reads := map[string]int{}
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		reads[r.URL.Path]++
		mu.Unlock()
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/slow"):
			w.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(100 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		case strings.HasPrefix(r.URL.Path, "/apis/zz"):
			_, _ = io.WriteString(w, strings.ReplaceAll(resources, "ext.example.com", "zz.example.com"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	const slow = 6
	for n := range slow {
		group := fmt.Sprintf("slow%d.example.com", n)
		b.register("v1", group, nil)
		b.available("v1", group)
	}
	go func() { _ = b.handlers.Read(t.Context()) }()
	b.until("the slow ones are being read", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(reads) >= quickReads
	})
	b.register("v1", "zz.example.com", nil)
	b.available("v1", "zz.example.com")
	began := time.Now()
	b.until("the healthy one is in discovery", func() bool {
		for _, x := range b.handlers.Describe() {
			if x.Group == "zz.example.com" && len(x.Resources) > 0 {
				return true
			}
		}
		return false
	})
	if took := time.Since(began); took > readTimeout-slowAfter { // when the first of the slow ones end
		t.Errorf("it took %v", took)
	}
}

// TestPausesGrow: documents that cannot be read are read after growing pauses.
func TestPausesGrow(t *testing.T) {
	x := &documents{}
	for _, want := range []time.Duration{readSoon, 2 * readSoon, 4 * readSoon, 8 * readSoon, 16 * readSoon, readLate, readLate} {
		if got := x.pause(true); got != want {
			t.Errorf("a pause of %v, want %v", got, want)
		}
	}
	for range 100 {
		x.pause(true)
	}
	if got := x.pause(true); got != readLate {
		t.Errorf("after many failures: %v", got)
	}
	if x.pause(false) != readAgain || x.pause(true) != readSoon {
		t.Error("a success does not end the failures")
	}
}

// TestPlaces: the longest-waiting extension is first, and a slow reading makes place for quick ones.
func TestPlaces(t *testing.T) {
	l := lanes{quick: make(chan struct{}, 1), slow: make(chan struct{}, 1)}
	first, ok := l.enter(false)
	if _, again := l.enter(false); !ok || again {
		t.Fatal("one quick reading at a time")
	}
	if !first.slowDown() {
		t.Fatal("there is a place for a slow reading")
	}
	second, ok := l.enter(false)
	if _, slow := l.enter(true); !ok || slow {
		t.Fatal("the slow reading has made place for a quick one")
	}
	if second.slowDown() {
		t.Error("there are places for two slow readings")
	}
	if !second.leave() || !first.leave() || len(l.quick)+len(l.slow) > 0 {
		t.Error("places are left")
	}
}
