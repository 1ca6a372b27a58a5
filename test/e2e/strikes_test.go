package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/contracttest/lossy"
)

// strike is one fault: how it begins and ends.
type strike struct {
	what       string
	begin, end func(t *testing.T)
}

// strike lets a fault happen while clients write, and returns when they can again.
func (x *trial) strike(t *testing.T, s strike) {
	t.Helper()
	t.Log(s.what)
	s.begin(t)
	x.during(t)
	s.end(t)
	x.await(t, writers)
}

// quiet returns the faults of hubs, NATS and the ways to them.
func (x *trial) quiet() []strike {
	strikes := []strike{x.restart(false, "watch-hub"), x.restart(true, "watch-hub-2"), x.restart(true, "watch-hub", "watch-hub-2"),
		x.restart(false, "nats"), x.restart(true, "nats")}
	return x.shuffled(append(strikes, x.partitions(4, isQuiet)...))
}

// loud returns all others, and some that happen at the same time.
func (x *trial) loud() []strike {
	strikes := []strike{x.restart(false, "store"), x.restart(true, "store-2"), x.restart(false, "frontdoor"),
		x.restart(true, "etcd"), x.restart(true, "frontdoor-2", "etcd")} // the latter in this order
	strikes = append(strikes, x.partitions(5, func(from, to string) bool { return !isQuiet(from, to) })...)
	any := x.partitions(4, func(string, string) bool { return true })
	return x.shuffled(append(strikes, both(any[0], any[1]), both(any[2], any[3])))
}

func both(a, b strike) strike {
	return strike{
		what:  a.what + ", and " + b.what,
		begin: func(t *testing.T) { a.begin(t); b.begin(t) },
		end:   func(t *testing.T) { a.end(t); b.end(t) },
	}
}

func isQuiet(from, to string) bool {
	return to == "nats" || strings.HasPrefix(to, "watch-hub") || strings.HasPrefix(from, "watch-hub")
}

func (x *trial) shuffled(strikes []strike) []strike {
	x.random.Shuffle(len(strikes), func(i, j int) { strikes[i], strikes[j] = strikes[j], strikes[i] })
	return strikes
}

// restart ends processes, at once or as they would end themselves, and starts
// them again.
func (x *trial) restart(kill bool, replicas ...string) strike {
	return strike{
		what: fmt.Sprintf("restart of %s, killed: %v", strings.Join(replicas, " and "), kill),
		begin: func(t *testing.T) {
			for _, replica := range replicas {
				if kill {
					x.processes[replica].kill()
				} else {
					x.processes[replica].stop(t)
				}
			}
		},
		end: func(t *testing.T) {
			for _, replica := range replicas {
				switch replica {
				case "etcd":
					x.startServer(t, replica, "-dir", x.data)
				case "nats":
					x.startNATS(t)
				default:
					x.start(t, x.programs[replica])
				}
			}
		},
	}
}

// partitions returns n of the links between chosen replicas, closed in one way or
// the other.
func (x *trial) partitions(n int, chosen func(from, to string) bool) (strikes []strike) {
	var pairs [][2]string
	for pair := range x.links {
		if chosen(pair[0], pair[1]) {
			pairs = append(pairs, pair)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) // so that the seed decides
	for _, i := range x.random.Perm(len(pairs))[:n] {
		l, what, begin := x.links[pairs[i]], "frozen", (*lossy.Proxy).BlackHole
		if x.random.IntN(2) == 0 {
			what, begin = "cut", (*lossy.Proxy).Cut
		}
		strikes = append(strikes, strike{
			what:  fmt.Sprintf("the link from %s to %s is %s", pairs[i][0], pairs[i][1], what),
			begin: func(*testing.T) { begin(l) },
			end:   func(*testing.T) { l.Heal() },
		})
	}
	return strikes
}
