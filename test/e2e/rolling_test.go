package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// rollingLong makes TestRolling large, and asserts its bound on latency.
var rollingLong = flag.Bool("rolling", false, "roll, scale and kill under the load of 200 writers and 1,000 informers, and bound the latency meanwhile")

// slowdown is how much longer the 99th percentile of writes may take while a service is
// rolled than while all is quiet.
const slowdown = 3

// TestRolling rolls, scales, kills, freezes and cuts off each service in turn, while
// clients write and informers follow through a balancer over three front doors. No
// acknowledged write is lost, informers see every event once, and clients get no error
// that they could not retry. What is planned goes unnoticed.
func TestRolling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts sixteen processes")
	}
	r := newRolling(t)
	r.begin(t)
	r.quiet(t)
	for _, service := range []string{"authn", "authz", "admission", "watch-hub", "store", "frontdoor"} {
		for _, s := range r.stages(service) {
			r.run(t, s)
		}
		r.check(t)
	}
	r.end(t)
	r.report(t)
}

// stage is one thing that happens to a service.
type stage struct {
	name    string
	planned bool // what an operator does, in contrast to a fault
	happen  func(t *testing.T)
}

// rolling is a suite whose services are replaced under load.
type rolling struct {
	*trial
	*load
	balancer string // its address
}

// threefold returns the programs with three front doors and two replicas of all others,
// and the third replicas of these.
func threefold() (started, others []program) {
	for _, p := range programs() {
		if len(p.peers) == 0 && !p.offer {
			continue // a client of the API
		}
		switch p.name {
		case "frontdoor":
			p.args = []string{"--shutdown-delay-duration=2s", "--goaway-chance=0.001"}
		case "admission": // without lifecycle, which is a client, there are no accounts
			p.args = []string{"--disable-admission-plugins=ServiceAccount"}
		}
		for i := range 3 {
			replica := p
			if replica.replica = p.name; i > 0 {
				replica.replica = fmt.Sprintf("%s-%d", p.name, i+1)
			}
			if p.name == "watch-hub" {
				replica.args = []string{"--watch-hub-name=" + replica.replica, "--watch-history=1h"}
			}
			if i < 2 || p.name == "frontdoor" {
				started = append(started, replica)
			} else {
				others = append(others, replica)
			}
		}
	}
	return started, others
}

func newRolling(t *testing.T) *rolling {
	t.Helper()
	started, others := threefold()
	// Links cost the test itself as much as the clients do.
	return balanced(t, startTrial(t, started, others, *rollingLong))
}

// balanced starts a balancer over all front doors, and makes the clients of a trial.
func balanced(t *testing.T, x *trial) *rolling {
	t.Helper()
	r := &rolling{trial: x}
	var doors []string
	for _, door := range r.replicas["frontdoor"] {
		if r.processes[door] != nil {
			r.connect(t, door)
		}
		doors = append(doors, r.between("balancer", door))
	}
	if err := build(root, r.bin+"/", nil, "./deploy/compose/balancer"); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.balancer, err = loopback.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	spawn(t, r.logs, filepath.Join(r.bin, "balancer"), "--listen-address="+r.balancer, "--to="+strings.Join(doors, ","),
		"--ca-file="+filepath.Join(r.home, "pki/ca.crt"), "--server-name=127.0.0.1")
	whole, err := cluster.Connect(r.home, r.balancer, r.vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the balancer has front doors", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, err := whole.Do(ctx, cluster.Request{Path: "/readyz"})
		return err == nil && a.Code == 200
	})
	r.load = newLoad(t, whole, r.trial)
	return r
}

// run lets one thing happen, and clients write afterwards.
func (r *rolling) run(t *testing.T, s stage) {
	t.Helper()
	r.enter(s.name, s.planned)
	began := time.Now()
	s.happen(t)
	r.settle(t)
	t.Logf("%s: %v, %s", s.name, time.Since(began).Round(time.Millisecond), r.latency(s.name))
}

// settle waits until some more writes go through.
func (r *rolling) settle(t *testing.T) {
	t.Helper()
	until := r.acknowledged() + r.size.writers
	within(t, informerPatience, "writes go through", func() bool { return r.acknowledged() >= until })
}

// stages are what happens to one service.
func (r *rolling) stages(service string) []stage {
	replicas := r.replicas[service]
	last := replicas[1]
	stages := []stage{
		{"roll " + service, true, func(t *testing.T) {
			for _, replica := range r.up(service) {
				r.processes[replica].stop(t)
				r.again(t, replica)
			}
		}},
		{"scale " + service, true, func(t *testing.T) { r.scale(t, service) }},
		{"kill " + service, false, func(t *testing.T) {
			r.processes[last].kill()
			r.settle(t)
			r.again(t, last)
		}},
		{"freeze " + service, false, func(t *testing.T) {
			r.signal(t, replicas[0], syscall.SIGSTOP)
			r.last(t)
			r.signal(t, replicas[0], syscall.SIGCONT)
		}},
		{"cut off " + service, false, func(t *testing.T) {
			var cut []*lossy.Proxy
			for pair, link := range r.links {
				if pair[0] == last || pair[1] == last {
					link.BlackHole()
					cut = append(cut, link)
				}
			}
			r.last(t)
			for _, link := range cut {
				link.Heal()
			}
		}},
	}
	if !*rollingLong {
		return stages[:len(stages)-1] // nothing is linked
	}
	return stages
}

// scale runs one replica, then three, then one, and then as many as before.
func (r *rolling) scale(t *testing.T, service string) {
	up := r.up(service)
	r.stopAll(t, up[1:])
	r.settle(t)
	for _, replica := range r.replicas[service][1:] {
		r.again(t, replica)
	}
	r.settle(t)
	r.stopAll(t, r.replicas[service][1:])
	r.settle(t)
	for _, replica := range up[1:] {
		r.again(t, replica)
	}
}

// stopAll stops replicas at the same time.
func (r *rolling) stopAll(t *testing.T, replicas []string) {
	t.Helper()
	var group sync.WaitGroup
	for _, replica := range replicas {
		group.Go(func() { r.processes[replica].stop(t) })
	}
	group.Wait()
}

// up returns the running replicas of a service.
func (r *rolling) up(service string) (up []string) {
	for _, replica := range r.replicas[service] {
		if p := r.processes[replica]; p != nil && !p.hasEnded() {
			up = append(up, replica)
		}
	}
	return up
}

// last lets a fault last for a while.
func (r *rolling) last(t *testing.T) { wait(t, r.size.fault) }

// again starts a replica and waits until it serves.
func (r *rolling) again(t *testing.T, replica string) {
	t.Helper()
	p := r.programs[replica]
	r.start(t, p)
	if p.name == "frontdoor" {
		r.connect(t, replica)
		return
	}
	within(t, informerPatience, replica+" serves", func() bool {
		conn, err := net.Dial("tcp", r.addresses[replica])
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func (r *rolling) signal(t *testing.T, replica string, signal syscall.Signal) {
	t.Helper()
	p := r.processes[replica].cmd.Process
	if err := p.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if signal == syscall.SIGSTOP {
		t.Cleanup(func() { _ = p.Signal(syscall.SIGCONT) })
	}
}

// quiet measures how writes are while nothing happens.
func (r *rolling) quiet(t *testing.T) {
	t.Helper()
	r.enter("quiet", true)
	wait(t, r.size.quiet)
	t.Logf("quiet: %s", r.latency("quiet"))
}

// report shows the latencies and, in the long form, compares those of planned changes
// with the quiet ones.
func (r *rolling) report(t *testing.T) {
	t.Helper()
	quiet := r.percentile("quiet", 99)
	for _, name := range r.phases {
		if name == "start" || name == "check" {
			continue
		}
		p99 := r.percentile(name, 99)
		if *rollingLong && strings.HasPrefix(name, "roll ") && p99 > slowdown*quiet {
			t.Errorf("%s: the 99th percentile of writes is %v, quiet %v", name, p99, quiet)
		}
		t.Logf("%-22s p99 %.1f times the quiet one; %s", name, float64(p99)/float64(quiet), r.latency(name))
	}
}
