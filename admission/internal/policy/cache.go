package policy

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/portico-platform/portico/services/kit/cel"
)

// maxCompiled bounds the policies of one kind that are compiled at a time. One takes 0.25 MB
// if it has variables, else 20 kB for each expression. A policy that was dropped is compiled
// again when a request matches it.
const maxCompiled = 512

// compiled holds the compiled expressions of a policy.
type compiled[T any] struct {
	mu    sync.Mutex // held while compiling
	value atomic.Pointer[T]
}

// cache keeps the compiled expressions of the policies that were used last.
type cache[T any] struct {
	engine *cel.Engine
	mu     sync.Mutex
	used   *simplelru.LRU[*compiled[T], struct{}]
}

func newCache[T any](e *cel.Engine, size int) *cache[T] {
	used, _ := simplelru.NewLRU(size, func(p *compiled[T], _ struct{}) { p.value.Store(nil) })
	return &cache[T]{engine: e, used: used}
}

// get returns the compiled expressions of a policy. It compiles them once, even if many
// requests need them.
func (c *cache[T]) get(p *compiled[T], compile func(*cel.Engine) *T) *T {
	known := p.value.Load()
	if known == nil {
		p.mu.Lock()
		if known = p.value.Load(); known == nil {
			known = compile(c.engine)
			p.value.Store(known)
		}
		p.mu.Unlock()
	}
	c.mu.Lock()
	c.used.Add(p, struct{}{})
	c.mu.Unlock()
	return known
}
