package scale

import (
	"maps"
	"slices"
)

// Sample is what the replicas of a service used during a step of a measurement, all together,
// and the resident memory of one of them at its end.
type Sample struct {
	Use
	Memory float64
}

// Step is one step of a measurement: what the clients did, and what each service used.
type Step struct {
	Seconds  float64
	Changes  float64 // in total
	Events   float64 // in total
	Watchers float64
	Bytes    float64 // of the objects that were created
	Samples  map[string]Sample
}

// Calibration is a measurement with two front doors, of which the clients use the first one only.
// Follower is the name of the second one in the samples. The steps are: nothing, changes, the
// same changes with watchers; and then many objects, and many watchers that get nothing, of which
// only the memory counts.
type Calibration struct{ Idle, Changes, Watched, Filled, Watching Step }

// Follower is the sample of a front door that only follows the changes, for one watcher.
const Follower = "follower"

// Names of services whose replicas do not share the work of a change.
const (
	etcd, hub, store, nats = "etcd", "watch-hub", "store", "nats"
)

// holders are the services whose memory depends on the objects.
var holders = []string{etcd, hub, store, FrontDoor}

// The caches of a front door and of a hub are bounded: by --memory-budget and twice
// --copied-bytes, and by --watch-history-bytes with the garbage of a collection.
const (
	frontDoorCaches = 512 << 20
	hubCaches       = 64 << 20
)

// Costs returns the costs that explain the measurement.
func (c Calibration) Costs() Costs {
	costs := Costs{}
	for _, name := range slices.Sorted(maps.Keys(c.Idle.Samples)) {
		if name == Follower {
			continue
		}
		idle, changes, watched := c.Idle.Samples[name], c.Changes.Samples[name], c.Watched.Samples[name]
		cost := Cost{Idle: idle.times(1 / c.Idle.Seconds), Memory: idle.Memory}
		perChange := above(changes.Use, cost.Idle.times(c.Changes.Seconds)).times(1 / c.Changes.Changes)
		withEvents := above(watched.Use, cost.Idle.times(c.Watched.Seconds))
		if c.Watched.Events > 0 {
			cost.Event = above(withEvents, perChange.times(c.Watched.Changes)).times(1 / c.Watched.Events)
		}
		if slices.Contains(holders, name) {
			cost.PerObject = max(0, c.Filled.Samples[name].Memory-changes.Memory) / c.Filled.Bytes
		}
		cost.split(name, perChange, c)
		costs[name] = cost
	}
	return costs
}

// split divides the cost of a change between what replicas share and what each of them does.
func (cost *Cost) split(name string, perChange Use, c Calibration) {
	per := func(service string) Use {
		seconds := c.Changes.Seconds / c.Idle.Seconds
		return above(c.Changes.Samples[service].Use, c.Idle.Samples[service].times(seconds)).times(1 / c.Changes.Changes)
	}
	switch name {
	case etcd, hub: // every member and every hub gets every change
		cost.Each = perChange
	case nats: // one message from the hub, and one to each of two front doors
		cost.Each, cost.Hop = perChange.times(1./3), perChange.times(1./3)
	case store: // every store follows etcd as the hub does
		cost.Each = least(perChange, per(hub))
		cost.Shared = above(perChange, cost.Each)
	case FrontDoor:
		cost.Follow = least(perChange, per(Follower))
		cost.Shared = above(perChange, cost.Follow)
		cost.PerWatch = max(0, c.Watching.Samples[name].Memory-c.Filled.Samples[name].Memory) / c.Watching.Watchers
		cost.AtMost = frontDoorCaches
	default:
		cost.Shared = perChange
	}
	if name == hub {
		cost.AtMost = hubCaches
	}
}

// above returns what a use has beyond another one, at least nothing.
func above(u, other Use) Use { return Use{max(0, u.CPU-other.CPU), max(0, u.Bytes-other.Bytes)} }

func least(a, b Use) Use { return Use{min(a.CPU, b.CPU), min(a.Bytes, b.Bytes)} }
