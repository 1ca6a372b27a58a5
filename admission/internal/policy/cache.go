package policy

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/portico-platform/portico/services/kit/cel"
)

// maxCompiled bounds the policies that are compiled at a time. One takes 0.25 MB if it has
// variables, else 20 kB for each expression. A policy that was dropped is compiled again
// when a request matches it.
const maxCompiled = 512

// cache keeps the compiled expressions of the policies that were used last.
type cache struct {
	engine *cel.Engine
	mu     sync.Mutex
	used   *simplelru.LRU[*validating, struct{}]
}

func newCache(e *cel.Engine, size int) *cache {
	used, _ := simplelru.NewLRU(size, func(p *validating, _ struct{}) { p.programs.Store(nil) })
	return &cache{engine: e, used: used}
}

// programs returns the compiled expressions of a policy.
func (c *cache) programs(p *validating) *programs {
	known := p.programs.Load()
	if known == nil {
		known = c.compile(p)
	}
	c.mu.Lock()
	c.used.Add(p, struct{}{})
	c.mu.Unlock()
	return known
}

// compile compiles a policy once, even if many requests need it.
func (c *cache) compile(p *validating) *programs {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.programs.Load()
	if known == nil {
		known = p.compile(c.engine)
		p.programs.Store(known)
	}
	return known
}
