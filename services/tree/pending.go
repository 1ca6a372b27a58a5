package tree

import "sync"

// pending are the members and items of the objects and lists that a walk is in. Decoding makes
// maps and lists when their size is known; encoding sorts the members.
type pending struct {
	members []member
	items   []any
	text    []byte // that encoding has made
	owners  bool   // the encoding is in a fieldsV1, of which parts may be shared
}

type member struct {
	name  string
	value any
}

// maxPending and maxText bound what a pending keeps for later use.
const (
	maxPending = 1 << 10
	maxText    = 64 << 10
)

var pendings = sync.Pool{New: func() any { return new(pending) }}

// free makes a pending available to other walks.
func (p *pending) free() {
	if cap(p.members) > maxPending || cap(p.items) > maxPending || cap(p.text) > maxText {
		return
	}
	clear(p.members[:cap(p.members)])
	clear(p.items[:cap(p.items)])
	p.members, p.items, p.owners = p.members[:0], p.items[:0], false
	pendings.Put(p)
}
