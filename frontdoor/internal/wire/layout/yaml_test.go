package layout

import (
	"strings"
	"testing"
	"time"
)

// TestManyDuplicateKeys: a body in which every line repeats a key is decoded in a time that grows with
// its size. Comparing each finding with all before it took a quarter of an hour.
func TestManyDuplicateKeys(t *testing.T) {
	const lines = 3 << 20 / 5
	done := make(chan int)
	go func() {
		_, strict, err := FromYAML([]byte(strings.Repeat("a: 1\n", lines)))
		if err != nil {
			t.Error(err)
		}
		done <- len(strict)
	}()
	select {
	case n := <-done:
		if n != lines-1 { // each has its line
			t.Errorf("%d findings, want %d", n, lines-1)
		}
	case <-time.After(time.Minute):
		t.Fatal("no result within a minute")
	}
}
