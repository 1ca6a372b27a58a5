// Package attack runs trials against a whole suite: each trial is one attack or fault, and
// returns an error if the suite did not withstand it. A session runs them while a probe
// reads and writes continuously as an administrator, and reports memory, slow requests,
// unexpected errors and panics.
//
// A Target describes a running suite. All load is bounded in count and time and goes to
// loopback addresses only. The trials are in the packages below.
package attack

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Target is a running suite as seen by an attacker and by its administrator.
type Target struct {
	// Admin is the suite as seen by an administrator.
	Admin *cluster.Cluster
	// Address is the host and port of the front door.
	Address string
	// Dir is a folder for files of the trials, private to the session.
	Dir string
	// ClientAuthority signs certificates of users, ProxyAuthority those of front proxies.
	// The suite trusts each for that purpose only. ProxyName is the only accepted common
	// name of a front proxy.
	ClientAuthority, ProxyAuthority *peertls.Authority
	ProxyName                       string
	// Processes are those of the suite.
	Processes []Process
	// KMS is the plugin that encrypts PodTemplates in etcd.
	KMS *kmsplugin.Plugin
	// Peers describes the connections between separate processes; nil for the all-in-one.
	Peers *Peers
	// Large makes trials use their full counts; otherwise they use smaller ones, for a
	// machine that runs other tests at the same time.
	Large bool

	tally tally
}

// Peers describes the connections between separate processes.
type Peers struct {
	// Authority signs the certificates of the services.
	Authority *peertls.Authority
	// NATS is the address of the NATS server.
	NATS string
	// Services are the gRPC addresses by name of the service.
	Services map[string]string
	// StoreLink is the link from the store to etcd.
	StoreLink *lossy.Proxy
	// Etcd is a client of etcd.
	Etcd *clientv3.Client
}

// Trial is one attack or fault.
type Trial struct {
	Name string
	// Finding is the entry of the security review that the trial tests.
	Finding string
	// Separate trials need the services to be processes of their own.
	Separate bool
	// Disruptive trials stop a part of the suite on purpose: the probe's figures are
	// ignored meanwhile.
	Disruptive bool
	// Run returns nil if the suite withstood the attack.
	Run func(ctx context.Context, t *Target) error
}

// Outcome is the result of a trial.
type Outcome struct {
	Trial Trial
	Took  time.Duration
	Err   error
	// Growth is the increase of the high-water mark of the memory of all processes, in
	// bytes.
	Growth int64
}

// trialTimeout bounds the time of one trial.
const trialTimeout = 2 * time.Minute

// attempt runs one trial.
func attempt(ctx context.Context, t *Target, trial Trial) (o Outcome) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
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
