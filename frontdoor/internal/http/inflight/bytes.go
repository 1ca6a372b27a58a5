package inflight

import "sync"

// Bytes limits the memory that requests hold, in total and per user.
type Bytes struct {
	total, share, least int64

	mu    sync.Mutex
	held  int64
	users map[string]int64
}

// NewBytes returns a limit of total bytes, of which one user may hold a quarter. A user
// may always hold 1/256 of total, even if that exceeds the limit.
func NewBytes(total int64) *Bytes {
	return &Bytes{total: total, share: total / 4, least: total / 256, users: map[string]int64{}}
}

// Hold is the memory that one request holds. Its zero value holds nothing.
type Hold struct {
	of   *Bytes
	user string
	n    int64
}

// Grow reserves n more bytes for a request. It returns false if that exceeds a limit. All
// calls of one Hold must be for the same user.
func (h *Hold) Grow(b *Bytes, who Requester, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	has := b.users[who.Name] + int64(n)
	if who.Class != Exempt && (has > b.share || b.held+int64(n) > b.total && has > b.least) {
		return false
	}
	b.users[who.Name] = has
	b.held += int64(n)
	h.of, h.user = b, who.Name
	h.n += int64(n)
	return true
}

// Release returns all memory of the request. It may be called more than once.
func (h *Hold) Release() {
	b := h.of
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= h.n
	if b.users[h.user] -= h.n; b.users[h.user] == 0 {
		delete(b.users, h.user)
	}
	*h = Hold{}
}
