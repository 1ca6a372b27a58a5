package lossy

import (
	"bytes"
	"net"
	"time"
)

// Fault is a failure of one connection, which happens once.
type Fault struct {
	// Match selects a piece of what the client sends: the fault begins with a piece that
	// contains Match. Empty matches every piece.
	Match string
	// Least is the minimum size of a piece that matches, in bytes. It distinguishes requests
	// from frames that the protocol exchanges by itself.
	Least int
	// After is the number of matching pieces that pass before the fault.
	After int
	// Kind is what is lost.
	Kind Kind
	// Hold is how long the connection stays open and silent before it breaks. During that
	// time the server has the request and the client has no response.
	Hold time.Duration
}

// Kind is what is lost.
type Kind int

const (
	Answer  Kind = iota // the server gets the request, the client gets no response
	Request             // the server never gets the request
	// Late breaks the client's connection, and the server gets the request when
	// Deliver is called.
	Late
)

// Lose arms a fault.
func (p *Proxy) Lose(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Armed reports whether there are faults that have not happened.
func (p *Proxy) Armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.faults) > 0
}

// Disarm removes the faults that have not happened.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Lost returns how many faults have happened.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Deliver sends the requests of all faults of kind Late to the server.
func (p *Proxy) Deliver() error {
	p.mu.Lock()
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, deliver := range late {
		if err := deliver(); err != nil {
			return err
		}
	}
	return nil
}

// hit returns the fault that begins with a piece that a client sends, nil if there is none.
func (p *Proxy) hit(sent []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if len(sent) < f.Least || !bytes.Contains(sent, []byte(f.Match)) {
			continue
		}
		if f.After--; f.After < 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			p.lost++
			return f
		}
	}
	return nil
}

// keep holds a request back until Deliver.
func (p *Proxy) keep(far net.Conn, request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, func() error {
		_, err := far.Write(request)
		return err
	})
}
