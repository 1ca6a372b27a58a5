// Package buffers decides how large the buffers are in which gRPC carries messages.
// It serves the promise that memory is bounded by what is in flight.
package buffers

import "google.golang.org/grpc/mem"

// Buffers of the pool have the sizes 2^smallest to 2^largest bytes: 256 bytes to 4 MiB,
// which is above the largest message that is common.
const (
	smallest = 8
	largest  = 22
)

// NewPool returns a pool whose buffers are at most twice as large as what they hold.
// Those of gRPC's own pool are 32 KiB, and then 1 MiB for an object of 40 KiB: some
// hundred clients that read or write such objects would take hundreds of megabytes.
func NewPool() (mem.BufferPool, error) {
	var sizes []uint8
	for exponent := uint8(smallest); exponent <= largest; exponent++ {
		sizes = append(sizes, exponent)
	}
	return mem.NewBinaryTieredBufferPool(sizes...)
}
