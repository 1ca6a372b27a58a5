package webhook

import (
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/portico-platform/portico/services/ledger"
)

// maxCalls bounds the calls of one webhook at a time. A webhook may itself write to the API and so, without noticing,
// be called by its own requests, without end; other requests have far fewer seats.
const maxCalls = 1000

// calls are the calls of one webhook in progress.
type calls struct{ n atomic.Int64 }

// enter begins a call, which leave ends. The error is a ledger.FullError.
func (c *calls) enter(of ledger.Owner) (leave func(), err error) {
	if c.n.Add(1) > maxCalls {
		c.n.Add(-1)
		return nil, &ledger.FullError{Owner: of}
	}
	return func() { c.n.Add(-1) }, nil
}

// callsOf returns the calls of the webhook at a URL, whichever configurations name it.
func (c *Clients) callsOf(url string) *calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared := c.calls[url].Value(); shared != nil {
		return shared
	}
	made := &calls{}
	pointer := weak.Make(made)
	c.calls[url] = pointer
	runtime.AddCleanup(made, func(url string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.calls[url] == pointer {
			delete(c.calls, url)
		}
	}, url)
	return made
}
