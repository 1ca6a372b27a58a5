// Package changes is how services follow what happens to objects: it joins the
// live messages of the bus with the watch hub's replays into one sequence per
// resource type, without gaps, duplicates or changes of order, and keeps typed
// mirrors of resource types on top of that.
//
// It decides subjects, messages and when to ask for a replay. It never talks to
// etcd, never decides what history is kept, and trusts the bus with nothing: a
// message that is lost, repeated or late only costs a replay, and one that the hub
// has not sealed (package seal) is refused, counted and never delivered. It serves "Watch
// procedure" of the specification.
package changes
