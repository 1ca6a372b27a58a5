// Package attack runs trials against a whole suite: each trial is one way in which
// an attacker or a fault could do harm, and says whether the suite withstood it. A
// session runs them while an administrator's probe reads and writes all the time,
// and reports what they cost: memory, slow requests, unexpected errors, panics.
//
// It knows nothing of how the suite is built or started: a Target says where it is.
// All load is bounded in count and time and goes to loopback addresses only. The
// trials themselves are in package trials.
package attack

import (
	"context"
	"fmt"
	"time"

	"github.com/portico-platform/portico/deploy/e2e/cluster"
	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// Target is a running suite as an attacker and its administrator reach it.
type Target struct {
	// Admin is the suite as seen by an administrator.
	Admin *cluster.Cluster
	// Address is the host and port of the front door.
	Address string
	// Dir is a folder for files of the trials, private to the session.
	Dir string
	// ClientAuthority signs certificates of users, ProxyAuthority those of front
	// proxies: the suite trusts both for that and nothing else. ProxyName is the
	// only common name that a front proxy may have.
	ClientAuthority, ProxyAuthority *peertls.Authority
	ProxyName                       string
	// Processes are those of the suite.
	Processes []Process
	// Peers is what lies between separate processes; nil for the all-in-one.
	Peers *Peers
	// Large makes trials use their full counts; otherwise they are sized for a
	// machine that runs other tests at the same time.
	Large bool

	tally tally
}

// Peers is what separate processes have between them.
type Peers struct {
	// Authority signs the certificates of the services.
	Authority *peertls.Authority
	// NATS is the address of the NATS server.
	NATS string
	// Services are the gRPC addresses by name of the service.
	Services map[string]string
	// StoreLink is the link from the store to etcd.
	StoreLink *lossy.Proxy
}

// Trial is one attack or fault.
type Trial struct {
	Name string
	// Finding is the entry of the security review that the trial stands for.
	Finding string
	// Separate trials need the services to be processes of their own.
	Separate bool
	// Disruptive trials stop a part of the suite on purpose: the probe's figures do
	// not count meanwhile.
	Disruptive bool
	// Run returns nil when the suite withstood.
	Run func(ctx context.Context, t *Target) error
}

// Outcome is what became of a trial.
type Outcome struct {
	Trial Trial
	Took  time.Duration
	Err   error
	// Growth is by how much the high-water mark of the memory of all processes
	// rose, in bytes.
	Growth int64
}

// patience bounds one trial: none may hang, whatever the suite does.
const patience = 90 * time.Second

// attempt runs one trial.
func attempt(ctx context.Context, t *Target, trial Trial) (o Outcome) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started, before := time.Now(), t.highWater()
	defer func() {
		if p := recover(); p != nil {
			o.Err = fmt.Errorf("the trial itself panicked: %v", p)
		}
		o.Trial, o.Took, o.Growth = trial, time.Since(started), t.highWater()-before
	}()
	return Outcome{Err: trial.Run(ctx, t)}
}
