package mirror

import (
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"github.com/portico-platform/portico/services"
)

// objects is an ordered copy-on-write tree from etcd path to object.
type objects = btree.Map[string, *services.Object]

// Snapshot is the immutable state of the whole store at a revision.
type Snapshot struct {
	// Revision is the newest revision with this state.
	Revision int64
	// Epoch is the id of the epoch of that revision.
	Epoch string
	// changed is the oldest revision with this state.
	changed int64
	// replaced is the mirror's count of replaced bytes when the snapshot was taken.
	replaced int64
	tree     *objects
}

// holds reports whether this is the state at a revision.
func (s *Snapshot) holds(revision int64) bool {
	return s.changed <= revision && revision <= s.Revision
}

// Get returns the object at a path.
func (s *Snapshot) Get(path string) (*services.Object, bool) { return s.tree.Get(path) }

// Ascend calls visit for the objects below a prefix whose path is at least from, in path
// order, until visit returns false.
func (s *Snapshot) Ascend(prefix, from string, visit func(path string, o *services.Object) bool) {
	s.tree.Ascend(max(prefix, from), func(path string, o *services.Object) bool {
		return strings.HasPrefix(path, prefix) && visit(path, o)
	})
}

// CountAfter returns how many objects below a prefix have a path greater than last, in
// logarithmic time.
func (s *Snapshot) CountAfter(prefix, last string) int64 {
	// Paths are text, and no byte of text is 0xff.
	return int64(s.rank(prefix+"\xff") - s.rank(last+"\x00"))
}

// rank returns how many paths are less than the given one.
func (s *Snapshot) rank(path string) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		at, _, _ := s.tree.GetAt(i)
		return at >= path
	})
}
