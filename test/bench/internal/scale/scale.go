// Package scale is a model of a suite of separate processes: what CPU, memory and network each
// service needs for a load, and which service reaches a limit first. It computes with measured
// costs and measures nothing itself.
//
// The model is linear. It leaves out that a busy process needs less for an operation than an
// idle one, because it wakes up less often, and that operations wait for each other.
package scale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Use is what one operation takes of a process.
type Use struct {
	CPU   float64 // seconds
	Bytes float64 // read and written, from and to connections and files
}

func (u Use) times(n float64) Use { return Use{u.CPU * n, u.Bytes * n} }

func (u Use) plus(other Use) Use { return Use{u.CPU + other.CPU, u.Bytes + other.Bytes} }

// Cost is what one service takes.
type Cost struct {
	// Idle is for each second and replica.
	Idle Use
	// Shared is for each change, at one of the replicas; Each at every replica; Follow at every
	// replica if front doors follow the type of the object; Hop for each of these front doors.
	Shared, Each, Follow, Hop Use
	// Event is for each event at a watcher, at one of the replicas.
	Event Use
	// Memory is that of a replica without objects and watchers, in bytes; PerObject is for each
	// byte of all objects, up to AtMost bytes unless that is 0; PerWatch is for each watcher of
	// the replica.
	Memory, PerObject, AtMost, PerWatch float64
}

// Costs are the costs of all services, by name.
type Costs map[string]Cost

// FrontDoor is the name of the service that the messages are for.
const FrontDoor = "frontdoor"

// Load is what clients do.
type Load struct {
	Objects, ObjectBytes float64
	Watchers             float64
	Changes              float64 // a second
	// Selected is the part of the changes that a watcher receives, and Followed the part that is of
	// types that front doors follow, because clients watch or read them often.
	Selected, Followed float64
}

// Replicas are the replicas by service; one of each that is not named.
type Replicas map[string]int

func (r Replicas) of(service string) float64 { return float64(max(1, r[service])) }

// Need is what each replica of a service needs.
type Need struct {
	Service  string
	Replicas int
	Use              // of a second
	Memory   float64 // bytes
}

// Needs returns what each replica of each service needs, in the order of their names.
func (c Costs) Needs(l Load, replicas Replicas) (all []Need) {
	events := l.Changes * l.Selected * l.Watchers
	for _, name := range slices.Sorted(maps.Keys(c)) {
		cost, n := c[name], replicas.of(name)
		use := cost.Idle.plus(cost.Each.times(l.Changes)).plus(cost.Shared.times(l.Changes / n)).
			plus(cost.Follow.times(l.Changes * l.Followed)).plus(cost.Hop.times(l.Changes * l.Followed * replicas.of(FrontDoor))).plus(cost.Event.times(events / n))
		objects := cost.PerObject * l.Objects * l.ObjectBytes
		if cost.AtMost > 0 {
			objects = min(objects, cost.AtMost)
		}
		all = append(all, Need{Service: name, Replicas: int(n), Use: use, Memory: cost.Memory + objects + cost.PerWatch*l.Watchers/n})
	}
	return all
}

// Machine is what one replica may use.
type Machine struct {
	Cores  float64
	Memory float64 // bytes
	Bytes  float64 // a second
}

// Wall is the resource that is used up first.
type Wall struct {
	Service, Resource string
	// Used is the part of the resource that is used: above 1 there is not enough.
	Used float64
}

// String returns the wall for a report.
func (w Wall) String() string {
	return fmt.Sprintf("%s of %s: %.0f %% used", w.Resource, w.Service, 100*w.Used)
}

// FirstWall returns the resource of which the largest part is used.
func FirstWall(needs []Need, of Machine) Wall {
	var walls []Wall
	for _, n := range needs {
		walls = append(walls, Wall{n.Service, "CPU", n.CPU / of.Cores}, Wall{n.Service, "memory", n.Memory / of.Memory}, Wall{n.Service, "network", n.Bytes / of.Bytes})
	}
	return slices.MaxFunc(walls, func(a, b Wall) int { return cmp.Compare(a.Used, b.Used) })
}

// mostReplicas is where Enough gives up.
const mostReplicas = 1000

// Enough returns the smallest numbers of replicas of services of which each replica uses at most
// a part of its machine. Services are left out for which no number is enough.
func (c Costs) Enough(l Load, of Machine, used float64, services ...string) Replicas {
	replicas := Replicas{}
	for _, name := range services {
		for n := 1; n <= mostReplicas; n++ {
			if FirstWall(Costs{name: c[name]}.Needs(l, Replicas{name: n}), of).Used <= used {
				replicas[name] = n
				break
			}
		}
	}
	return replicas
}
