package etcd

import (
	"errors"
	"time"
)

// ErrNoProgress is the cause of the end of a watch whose member does not proceed although etcd does: a
// member whose disk hangs keeps its connections and knows the leader, so that nothing else ends the
// watch. The client opens the next one at another member.
var ErrNoProgress = errors.New("the etcd member that serves the watch makes no progress, although others do")

const (
	// stuckAfter is how long a watch may make no progress, and mostStuck the most of it.
	stuckAfter, mostStuck = 3 * time.Second, 24 * time.Second
	// equalTries is after how many watches that time doubles: other requests take turns too, so that
	// several watches in a row may go to the same member.
	equalTries = 3
)

// Patience returns how long a watch may make no progress while etcd has a newer revision. It grows
// with the watches before it, in a row, that made none, in case that etcd needs longer for its first
// response.
func Patience(stuck int) time.Duration { return min(stuckAfter<<min(stuck/equalTries, 10), mostStuck) }
