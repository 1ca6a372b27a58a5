package etcd

import (
	"errors"
	"time"
)

// ErrNoProgress is the cause of the end of a watch whose member does not proceed although etcd does: a
// member whose disk hangs keeps its connections and knows the leader, so that nothing else ends the
// watch. The client opens the next one at another member.
var ErrNoProgress = errors.New("the member of etcd that serves the watch does not proceed, although others do")

// stuckAfter is how long a watch may make no progress, and mostStuck the most of it.
const stuckAfter, mostStuck = 3 * time.Second, 24 * time.Second

// Patience returns how long a watch may make no progress while etcd has a newer revision. It doubles
// with each watch before it, in a row, that made none, in case that etcd needs longer for its first
// response.
func Patience(stuck int) time.Duration { return min(stuckAfter<<min(stuck, 10), mostStuck) }
