// Package loopback finds free addresses for servers that tests and benchmarks start on this
// machine, as processes or in their own process.
package loopback

import (
	"errors"
	"net"
	"strconv"
	"sync"
)

// The ports are below the ephemeral ports that operating systems assign to clients and to
// listeners on port 0. So a port is not taken before its server listens, or while the server
// is restarted.
const (
	firstPort = 10000
	lastPort  = 32000
	blockSize = 100
)

// FreeAddress returns a free loopback address. No other call returns the same one, in this
// process or another one.
func FreeAddress() (string, error) { return reserved().freeAddress() }

var reserved = sync.OnceValue(func() *ports { return &ports{} })

// ports assigns the ports of blocks that no other process uses: the owner of a block listens
// on its first port until the process ends.
type ports struct {
	mu         sync.Mutex
	guards     []net.Listener
	next, last int // of the newest block
}

func (p *ports) freeAddress() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.next == p.last {
			if err := p.claimBlock(); err != nil {
				return "", err
			}
		}
		address := onPort(p.next)
		p.next++
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // used by an unrelated server
		}
		return address, l.Close()
	}
}

func (p *ports) claimBlock() error {
	for first := firstPort; first < lastPort; first += blockSize {
		guard, err := net.Listen("tcp", onPort(first))
		if err != nil {
			continue
		}
		p.guards = append(p.guards, guard)
		p.next, p.last = first+1, first+blockSize
		return nil
	}
	return errors.New("no block of ports is free")
}

func onPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
