// Package buffers is the pool of gRPC's message buffers. Its sizes bound the memory by the
// size of the messages in flight.
package buffers

import "google.golang.org/grpc/mem"

// Buffers of the pool have 2^smallest to 2^largest bytes: 256 bytes to 4 MiB, which is
// more than common messages need.
const (
	smallest = 8
	largest  = 22
)

// NewPool returns a pool whose buffers are at most twice the requested size. gRPC's own
// pool uses 1 MiB for an object of 40 KiB: a few hundred clients that read or write such
// objects would take hundreds of megabytes.
func NewPool() (mem.BufferPool, error) {
	var sizes []uint8
	for exponent := uint8(smallest); exponent <= largest; exponent++ {
		sizes = append(sizes, exponent)
	}
	return mem.NewBinaryTieredBufferPool(sizes...)
}
