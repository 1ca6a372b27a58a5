package cel

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

const (
	// maxSource bounds the source texts of the cached programs, in bytes. A program takes
	// about 200 bytes of memory for each byte of its source.
	maxSource = 256 << 10
	// programOverhead is added to each source text, so that many short ones are bounded too.
	programOverhead = 64
)

// programKey identifies a compiled expression.
type programKey struct {
	source    string
	variables variables
	outputs   string
}

// programs is a cache of compiled expressions, which drops those that were not used for
// the longest time.
type programs struct {
	compiling singleflight.Group

	mu    sync.Mutex
	known *simplelru.LRU[programKey, admissioncel.CompilationResult]
	held  int // bytes of source texts in known
	most  int
}

func newPrograms(most int) *programs {
	p := &programs{most: most}
	// The number is not the limit: that is the size of the sources.
	p.known, _ = simplelru.NewLRU(most/programOverhead+1, func(k programKey, _ admissioncel.CompilationResult) { p.held -= k.weight() })
	return p
}

func (k programKey) weight() int { return len(k.source) + programOverhead }

// get returns a cached program, or what compile returns. Concurrent calls for one
// expression compile it once.
func (p *programs) get(k programKey, compile func() admissioncel.CompilationResult) admissioncel.CompilationResult {
	p.mu.Lock()
	known, ok := p.known.Get(k)
	p.mu.Unlock()
	if ok {
		return known
	}
	made, _, _ := p.compiling.Do(k.flight(), func() (any, error) {
		result := compile()
		p.add(k, result)
		return result, nil
	})
	return made.(admissioncel.CompilationResult)
}

// flight is the key as a string.
func (k programKey) flight() string {
	flags := []byte{'-', '-', 0}
	if k.variables.params {
		flags[0] = 'p'
	}
	if k.variables.authorizer {
		flags[1] = 'a'
	}
	return string(flags) + k.outputs + "\x00" + k.source
}

func (p *programs) add(k programKey, result admissioncel.CompilationResult) {
	if k.weight() > p.most {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known.Contains(k) {
		p.held += k.weight()
	}
	p.known.Add(k, result)
	for p.held > p.most {
		p.known.RemoveOldest()
	}
}
