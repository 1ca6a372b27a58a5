package lossy

import (
	"net"
	"slices"
	"sync"
	"time"
)

// dialTimeout bounds how long the proxy waits for its target.
const dialTimeout = 5 * time.Second

// pair is a connection of a client and the corresponding one to the target.
type pair struct {
	proxy     *Proxy
	near, far net.Conn
	mu        sync.Mutex
	muted     bool // bytes from the target are discarded
}

// join connects a client to the target until either closes the connection.
func (p *Proxy) join(near net.Conn) {
	defer near.Close()
	if !p.hold(near) {
		return
	}
	defer p.release(near)
	if !p.wait() {
		return
	}
	far, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.hold(far) {
		return
	}
	defer p.release(far)
	c := &pair{proxy: p, near: near, far: far}
	var back sync.WaitGroup
	back.Go(c.down)
	c.up()
	back.Wait()
}

// up forwards bytes of the client.
func (c *pair) up() {
	keep := false
	defer func() {
		_ = c.near.Close()
		if !keep {
			_ = c.far.Close()
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.near.Read(buffer)
		if n > 0 {
			if !c.proxy.wait() {
				return
			}
			f := c.proxy.hit(buffer[:n])
			if f != nil {
				c.mute()
				switch f.Kind {
				case Request:
					return
				case Late:
					keep = true
					c.proxy.keep(c.far, slices.Clone(buffer[:n]))
					return
				}
			}
			if _, err := c.far.Write(buffer[:n]); err != nil {
				return
			}
			if f != nil { // only after the write, so that the server has the request
				time.AfterFunc(f.Hold, func() {
					_ = c.near.Close()
					_ = c.far.Close()
				})
			}
		}
		if err != nil {
			return
		}
	}
}

// down forwards bytes of the target until the target closes the connection.
func (c *pair) down() {
	defer c.near.Close()
	defer c.far.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.far.Read(buffer)
		if n > 0 && (!c.proxy.wait() || !c.answer(buffer[:c.proxy.allowed(n)])) {
			return
		}
		if err != nil {
			return
		}
	}
}

// answer forwards bytes of the target to the client, unless the client is muted. It
// returns false if the client has disconnected.
func (c *pair) answer(sent []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted || len(sent) == 0 {
		return true
	}
	_, err := c.near.Write(sent)
	return err == nil
}

func (c *pair) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = true
}
