// Package changes lets services follow changes of objects: it merges the live messages of
// the bus with the watch hub's replays into one sequence per resource type, without gaps,
// duplicates or reordering, and builds typed mirrors of resource types on it.
//
// It defines subjects and messages, and requests replays. It does not access etcd, and
// does not rely on the bus: a message that is lost, repeated or late only causes a replay,
// and one that the hub has not sealed (package seal) is refused and counted. It serves
// "Watch procedure" of the specification.
package changes
