// Package stack makes the stack of a goroutine that serves a request large enough in one step.
// The runtime begins with a small one, and otherwise doubles and copies it several times, with
// all stages of the pipeline on it.
package stack

import "net/http"

// Grow makes room for the request of a method. It is called first in a new goroutine, when there
// is little to copy. Watches keep their stack for long, and get no more than they need.
func Grow(method string) byte {
	if method == http.MethodGet {
		return to16K(len(method))
	}
	return to32K(len(method))
}

//go:noinline
func to16K(i int) byte {
	var frame [8 << 10]byte
	return frame[i%len(frame)]
}

//go:noinline
func to32K(i int) byte {
	var frame [16 << 10]byte
	return frame[i%len(frame)]
}
