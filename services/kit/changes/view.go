package changes

import "github.com/tidwall/btree"

// View is the content of a mirror at one revision.
type View[T any] struct{ of *snapshot[T] }

// Now returns the present content.
func (m *Mirror[T]) Now() View[T] { return View[T]{m.now.Load()} }

// Revision returns the revision of the content; 0 before the mirror is ready.
func (v View[T]) Revision() int64 { return v.of.revision }

// Reached is Mirror.Reached.
func (v View[T]) Reached() (revision, changed int64) { return v.of.revision, v.of.changed }

// Replaced is closed when there is a newer content.
func (v View[T]) Replaced() <-chan struct{} { return v.of.replaced }

// Get is Mirror.Get.
func (v View[T]) Get(namespace, name string) (T, bool) {
	found, ok := v.of.objects.Get(held[T]{namespace: namespace, name: name})
	return found.value, ok
}

// List is Mirror.List.
func (v View[T]) List(namespace string) []T {
	var values []T
	if namespace == "" {
		values = make([]T, 0, v.of.objects.Len())
	}
	v.of.objects.Ascend(held[T]{namespace: namespace}, func(h held[T]) bool {
		if namespace != "" && h.namespace != namespace {
			return false
		}
		values = append(values, h.value)
		return true
	})
	return values
}

// Difference calls see for each object whose value differs in two contents, in the order of the
// store's lists. The zero View is empty; for an object that a content lacks see gets the zero T.
func Difference[T comparable](was, is View[T], see func(was, is T)) {
	if was.of == is.of {
		return
	}
	var none T
	old, now := was.cursor(), is.cursor()
	for old.more || now.more {
		switch {
		case !now.more || old.more && before(old.Item(), now.Item()):
			see(old.Item().value, none)
			old.more = old.Next()
		case !old.more || before(now.Item(), old.Item()):
			see(none, now.Item().value)
			now.more = now.Next()
		default:
			if a, b := old.Item().value, now.Item().value; a != b {
				see(a, b)
			}
			old.more, now.more = old.Next(), now.Next()
		}
	}
}

// cursor is a position in a content; more is false at its end.
type cursor[T any] struct {
	btree.IterG[held[T]]
	more bool
}

func (v View[T]) cursor() *cursor[T] {
	objects := newObjects[T]()
	if v.of != nil {
		objects = v.of.objects
	}
	c := &cursor[T]{IterG: objects.Iter()}
	c.more = c.First()
	return c
}

type held[T any] struct {
	namespace, name string
	value           T
}

func before[T any](a, b held[T]) bool {
	if a.namespace != b.namespace {
		return precedes(a.namespace, b.namespace)
	}
	return a.name < b.name
}

// precedes reports whether the keys of a namespace come before those of another, in the order of
// the store: a slash ends a namespace there.
func precedes(a, b string) bool {
	n := min(len(a), len(b))
	switch {
	case a[:n] != b[:n]:
		return a < b
	case len(a) == len(b):
		return false
	case len(a) < len(b):
		return '/' < b[n]
	}
	return a[n] < '/'
}

func newObjects[T any]() *btree.BTreeG[held[T]] {
	return btree.NewBTreeGOptions(before[T], btree.Options{NoLocks: true})
}
