package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services/kit/etcd"
)

// etcdCluster is the main etcd, or one of --etcd-servers-overrides.
type etcdCluster struct {
	name     string // of an override; empty for the main etcd
	servers  []string
	security *tls.Config
}

// etcdClusters returns what the flags name.
func etcdClusters(flags *pflag.FlagSet) (all []etcdCluster, err error) {
	servers, _ := flags.GetStringSlice("etcd-servers")
	overrides, err := etcd.ParseAnyOverrides(flags)
	if err != nil {
		return nil, err
	}
	security, err := etcd.Security(servers, flags)
	if err != nil {
		return nil, err
	}
	if len(servers) > 0 {
		all = append(all, etcdCluster{"", servers, security})
	}
	for _, o := range overrides {
		if security, err = o.Security(flags); err != nil {
			return nil, err
		}
		all = append(all, etcdCluster{o.Name, o.Servers, security})
	}
	return all, nil
}

// subject adds the name of an override to what a finding is about.
func (c etcdCluster) subject(of string) string {
	if c.name == "" {
		return of
	}
	return of + " (etcd " + c.name + ")"
}

// etcd asks every member of a cluster for its state, and compares them.
func (e *examination) etcd(ctx context.Context, c etcdCluster) {
	states := map[string]*clientv3.StatusResponse{}
	for _, server := range c.servers {
		state, err := member(ctx, server, c.security)
		if err != nil {
			e.bad(Finding{Fail, "etcd", c.subject(server), err.Error(), "check that this member runs, and that its certificate and the client certificate are valid"})
			continue
		}
		states[server] = state
		e.member(c.subject(server), state)
	}
	if len(states) < 2 {
		return
	}
	leaders, versions, newest := map[uint64]bool{}, map[string]bool{}, uint64(0)
	for _, s := range states {
		leaders[s.Leader], versions[s.Version] = true, true
		newest = max(newest, s.RaftAppliedIndex)
	}
	if len(leaders) > 1 {
		e.bad(Finding{Warn, "etcd", c.subject("members"), "they do not agree on the leader", "run the doctor again; if this persists, check that the members reach each other"})
	}
	if len(versions) > 1 {
		e.bad(Finding{Warn, "etcd", c.subject("members"), "they have different versions", "finish the upgrade of etcd"})
	}
	for server, s := range states {
		if newest-s.RaftAppliedIndex > behind {
			e.bad(Finding{Warn, "etcd", c.subject(server), fmt.Sprintf("%d entries behind the others", newest-s.RaftAppliedIndex), "check its disk and the network to the leader"})
		}
	}
}

// member returns the state of one member after it has answered a linearizable read.
func member(ctx context.Context, server string, security *tls.Config) (*clientv3.StatusResponse, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server}, TLS: security, Logger: zap.NewNop(), DialTimeout: timeout})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := client.Get(ctx, "/"); err != nil {
		return nil, fmt.Errorf("a linearizable read: %w", err)
	}
	return client.Status(ctx, server)
}

// member judges the state of one.
func (e *examination) member(subject string, s *clientv3.StatusResponse) {
	for _, alarm := range s.Errors {
		advice := "see etcd's log"
		switch {
		case strings.Contains(alarm, etcdserverpb.AlarmType_NOSPACE.String()):
			advice = "delete objects, compact, defragment and disarm: docs/storage.md"
		case strings.Contains(alarm, etcdserverpb.AlarmType_CORRUPT.String()):
			advice = "members differ: replace the corrupt one, or restore a backup: docs/operations/backup.md"
		}
		e.bad(Finding{Fail, "etcd", subject, "alarm: " + alarm, advice})
	}
	switch {
	case s.Leader == 0:
		e.bad(Finding{Fail, "etcd", subject, "has no leader", "check that a majority of the members run and reach each other"})
	case s.IsLearner:
		e.bad(Finding{Warn, "etcd", subject, "is a learner", "promote it once it has caught up"})
	case len(s.Errors) == 0:
		e.ok("etcd", subject, "version %s, no alarm", s.Version)
	}
	if s.DbSizeQuota > 0 {
		// The quota bounds the file, also the part of it that is free until etcd is defragmented.
		advice := "delete objects, or raise etcd's --quota-backend-bytes"
		if s.DbSizeInUse < s.DbSize/2 {
			advice = "most of it is free: defragment the members, one after the other"
		}
		e.room(subject, float64(s.DbSize)/float64(s.DbSizeQuota), advice)
	}
}
