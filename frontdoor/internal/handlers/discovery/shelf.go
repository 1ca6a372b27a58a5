package discovery

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// shelfBytes bounds the documents of single group versions of custom types that are kept: about 2,000 of them.
	shelfBytes = 16 << 20
	// shelfEntry is about what an entry takes beside its content.
	shelfEntry = 1 << 10
	// shelfEntries is more than there is space for.
	shelfEntries = shelfBytes / shelfEntry
)

// Shelf keeps the documents that were requested last.
type Shelf struct {
	mu           sync.Mutex
	kept         *simplelru.LRU[string, *shelved]
	bytes, bound int64
}

// shelved is a document that is on the shelf.
type shelved struct {
	body  func() (*body, error)
	bytes int64 // 0 while it is made
}

func newShelf() *Shelf {
	s := &Shelf{bound: shelfBytes}
	s.kept, _ = simplelru.NewLRU(shelfEntries, func(_ string, of *shelved) { s.bytes -= of.bytes }) // the size is positive
	return s
}

// get returns the document with this key. It is made once for all who request it.
func (s *Shelf) get(key string, make func() (*body, error)) (*body, error) {
	s.mu.Lock()
	of, ok := s.kept.Get(key)
	if !ok {
		of = &shelved{body: sync.OnceValues(make)}
		s.kept.Add(key, of)
	}
	s.mu.Unlock()
	b, err := of.body()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, ok := s.kept.Peek(key); !ok || now != of || of.bytes > 0 {
		return b, err
	}
	if err != nil {
		s.kept.Remove(key)
		return nil, err
	}
	of.bytes = int64(len(b.zipped)) + shelfEntry
	s.bytes += of.bytes
	s.shrink()
	return b, nil
}

// shrink drops what was requested longest ago. The caller holds s.mu.
func (s *Shelf) shrink() {
	for s.bytes > s.bound && s.kept.Len() > 0 {
		s.kept.RemoveOldest()
	}
}

// Bytes implements memory.Cache.
func (s *Shelf) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Bound implements memory.Cache.
func (s *Shelf) Bound(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound = min(bytes, shelfBytes)
	s.shrink()
}
