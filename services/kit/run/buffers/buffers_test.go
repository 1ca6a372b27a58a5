package buffers_test

import (
	"testing"

	"github.com/portico-platform/portico/services/kit/run/buffers"
)

func TestBuffersFitWhatTheyHold(t *testing.T) {
	pool, err := buffers.NewPool()
	if err != nil {
		t.Fatal(err)
	}
	for size := 300; size <= 4<<20; size = size*3/2 + 1 {
		buffer := pool.Get(size)
		if len(*buffer) != size || cap(*buffer) > 2*size {
			t.Errorf("a buffer for %d bytes has %d of %d", size, len(*buffer), cap(*buffer))
		}
		pool.Put(buffer)
	}
}
