package window

// queue is a FIFO queue that releases its memory.
type queue[T any] struct {
	items []T
	head  int // items before it have been popped
}

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }
func (q *queue[T]) live() []T   { return q.items[q.head:] }
func (q *queue[T]) first() *T   { return &q.items[q.head] }
func (q *queue[T]) last() *T    { return &q.items[len(q.items)-1] }
func (q *queue[T]) length() int { return len(q.items) - q.head }

// pop removes the first item. When half of the array is unused, the rest is copied to a
// smaller one.
func (q *queue[T]) pop() {
	var none T
	q.items[q.head] = none
	if q.head++; q.head >= 64 && q.head*2 >= len(q.items) {
		q.items = append(make([]T, 0, q.length()*3/2), q.live()...)
		q.head = 0
	}
}
