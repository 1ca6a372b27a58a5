// Package ledger accounts for the memory that others make a process hold: the bodies, selectors and
// responses of clients, the answers of webhooks, extensions, admission services, plugins and nodes. For each
// such text it knows the bound that applies before the text is parsed (texts.go lists all), what the
// text weighs once it is decoded, and who pays: every owner has a share of the memory of the process. It
// serves "Limits" of the specification.
//
// Whoever has no share left is refused, with TooManyRequests (429) or RequestEntityTooLarge (413);
// others are not affected.
package ledger

import (
	"sync"
)

// Kind is the kind of an owner.
type Kind string

// The kinds of owners. They are label values of metrics.
const (
	User             Kind = "user" // all anonymous requests are of one user
	Extension        Kind = "extension"
	Webhook          Kind = "webhook"
	AdmissionService Kind = "admission-service"
	Node             Kind = "node"
	Peer             Kind = "peer" // any other peer: a plugin, an issuer, another front door
)

// Owner is who pays for memory.
type Owner struct {
	Kind Kind
	Name string
	// Exempt is set for administrators: their memory is counted, and never refused.
	Exempt bool
}

// account is an owner without what is not its identity.
type account struct {
	kind Kind
	name string
}

const (
	// unknownRoom is used where the memory of the process is not known. More is not used in any case: a
	// process that answers everybody in turn needs no more, however large the machine is.
	unknownRoom, leastRoom = 256 << 20, 32 << 20
	// roomPart of the memory of the process may be held for others, sharePart of that for one owner. An owner
	// may always hold leastPart, so that a full ledger does not lock out those who hold little.
	roomPart, sharePart, leastPart = 8, 4, 256
)

// Room returns how many bytes a process with so many bytes of memory may hold for others; 0 means unknown.
func Room(memory int64) int64 {
	if memory <= 0 {
		return unknownRoom
	}
	return min(max(memory/roomPart, leastRoom), unknownRoom)
}

// Ledger counts the bytes that are held for others. A nil Ledger counts nothing and refuses nothing.
type Ledger struct {
	total, share, least int64

	mu       sync.Mutex
	held     int64
	refused  map[Kind]int64
	accounts map[account]int64
}

// New returns a ledger of total bytes, of which one owner may hold a quarter. An owner may always hold 1/256
// of total, even if that exceeds the total.
func New(total int64) *Ledger {
	return &Ledger{total: total, share: total / sharePart, least: total / leastPart, refused: map[Kind]int64{}, accounts: map[account]int64{}}
}

// Share returns how many bytes one owner may hold.
func (l *Ledger) Share() int64 {
	if l == nil {
		return unknownRoom / sharePart
	}
	return l.share
}

// Hold is the memory of one request, call or stream. Its zero value holds nothing.
type Hold struct {
	of    *Ledger
	owner account
	n     int64
}

// Grow reserves n more bytes. It returns false if that exceeds the share of the owner, or the total. All
// calls of one Hold must be for the same owner.
func (h *Hold) Grow(l *Ledger, who Owner, n int64) bool {
	if l == nil || n <= 0 {
		return true
	}
	id := account{who.Kind, who.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	has := l.accounts[id] + n
	if !who.Exempt && (has > l.share || l.held+n > l.total && has > l.least) {
		l.refused[who.Kind]++
		return false
	}
	l.accounts[id] = has
	l.held += n
	h.of, h.owner = l, id
	h.n += n
	return true
}

// Release returns all memory. It may be called more than once.
func (h *Hold) Release() {
	l := h.of
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= h.n
	if l.accounts[h.owner] -= h.n; l.accounts[h.owner] == 0 {
		delete(l.accounts, h.owner)
	}
	*h = Hold{}
}

// Held returns the bytes that are held.
func (l *Ledger) Held() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// HeldBy returns the bytes that are held for owners of a kind, and how many times more was refused to them.
func (l *Ledger) HeldBy(k Kind) (held, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.accounts {
		if id.kind == k {
			held += n
		}
	}
	return held, l.refused[k]
}

// Kinds returns all kinds of owners.
func Kinds() []Kind { return []Kind{User, Extension, Webhook, AdmissionService, Node, Peer} }

// FullError is the error of an owner whose share is used up. It becomes TooManyRequests (429).
type FullError struct{ Owner Owner }

// Error implements error.
func (e *FullError) Error() string {
	if e.Owner.Kind == User {
		return "too many bytes of requests in progress, please try again later"
	}
	return "too many bytes of " + string(e.Owner.Kind) + " " + e.Owner.Name + " in progress, please try again later"
}
