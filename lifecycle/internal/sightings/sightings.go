// Package sightings remembers since when controllers know of deletions. What has to wait until
// others know of one, too, waits from then on: the deletionTimestamp is by another clock, in whole
// seconds, and of pods it is in the future. It serves "Two-phase deletion of a resource" of the
// specification.
package sightings

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Settle is how long after a deletion has been seen others may not know of it.
const Settle = 500 * time.Millisecond

// Deletions are those of objects of one type without namespaces. The zero value has none.
type Deletions struct {
	mu    sync.Mutex
	known map[string]sighting // by name
}

type sighting struct {
	uid   types.UID
	first time.Time
}

// Left returns for how long, from now on, others may not know that an object is being deleted.
func (d *Deletions) Left(o metav1.Object, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]sighting{}
	}
	seen := d.known[o.GetName()]
	if seen.uid != o.GetUID() {
		seen = sighting{o.GetUID(), now}
		d.known[o.GetName()] = seen
	}
	return seen.first.Add(Settle).Sub(now)
}

// Forget drops what is known of a name whose object is gone.
func (d *Deletions) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, name)
}
