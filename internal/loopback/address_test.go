package loopback

import (
	"net"
	"testing"
)

func TestFreeAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 2*blockSize + 1 {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was returned twice", address)
		}
		seen[address] = true
	}
	for _, guard := range reserved().guards {
		if _, err := net.Listen("tcp", guard.Addr().String()); err == nil {
			t.Errorf("another process could take the block of %s as well", guard.Addr())
		}
	}
}
