package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/contracttest/lossy"
)

// strike lets one fault happen, for a random time of up to a second, and waits until
// the suite answers again.
func (l *linearTrial) strike(t *testing.T, i int) {
	t.Helper()
	faults := []func(*testing.T, time.Duration){l.loseAnswers, l.killStore, l.loseAnswers, l.blackHole, l.loseAnswers, l.resetDoor, l.pauseSome, l.killEtcd}
	faults[i%len(faults)](t, 100*time.Millisecond+time.Duration(l.random.Int64N(int64(600*time.Millisecond))))
	for i, door := range l.replicas["frontdoor"] {
		l.processes[door].await(t, l.doors[i])
	}
}

// link returns the link of a pair of replicas.
func (l *linearTrial) link(from, to string) *lossy.Proxy { return l.links[[2]string{from, to}] }

func (l *linearTrial) someStore() string {
	stores := l.replicas["store"]
	return stores[l.random.IntN(len(stores))]
}

// loseAnswers loses etcd's responses to the stores.
func (l *linearTrial) loseAnswers(t *testing.T, d time.Duration) {
	t.Logf("answers of etcd to the stores are lost for %v", d)
	for _, store := range l.replicas["store"] {
		l.link(store, "etcd").LoseAnswers(l.random.Int64N(2000))
	}
	wait(t, d)
	for _, store := range l.replicas["store"] {
		l.link(store, "etcd").Heal()
	}
}

func (l *linearTrial) killStore(t *testing.T, d time.Duration) {
	store := l.someStore()
	t.Logf("%s is killed for %v", store, d)
	l.processes[store].kill()
	wait(t, d)
	l.start(t, l.programs[store])
}

func (l *linearTrial) blackHole(t *testing.T, d time.Duration) {
	store := l.someStore()
	t.Logf("nothing passes between %s and etcd for %v", store, d)
	l.link(store, "etcd").BlackHole()
	wait(t, d)
	l.link(store, "etcd").Heal()
}

func (l *linearTrial) resetDoor(t *testing.T, d time.Duration) {
	t.Logf("a front door's connections to the stores are reset, and delayed for %v", d)
	for _, store := range l.replicas["store"] {
		l.link("frontdoor", store).Reset()
		l.link("frontdoor", store).Delay(20 * time.Millisecond)
	}
	wait(t, d)
	for _, store := range l.replicas["store"] {
		l.link("frontdoor", store).Heal()
	}
}

func (l *linearTrial) pauseSome(t *testing.T, d time.Duration) {
	store := l.someStore()
	t.Logf("%s and a hub are paused for %v", store, d)
	l.pause(t, d, store, "watch-hub")
}

func (l *linearTrial) killEtcd(t *testing.T, d time.Duration) {
	t.Logf("etcd is killed for %v", d)
	l.processes["etcd"].kill()
	wait(t, d)
	l.startServer(t, "etcd", "-dir", l.data)
}

// pause stops processes for a time, as machines that hang do.
func (l *linearTrial) pause(t *testing.T, d time.Duration, replicas ...string) {
	t.Helper()
	for _, replica := range replicas {
		if err := l.processes[replica].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, d)
	for _, replica := range replicas {
		if err := l.processes[replica].cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}

// wait lets the clients go on for a time.
func wait(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
