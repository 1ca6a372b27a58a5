package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcd asks every member for its state, and compares them.
func (e *examination) etcd(ctx context.Context, servers []string, security *tls.Config) {
	states := map[string]*clientv3.StatusResponse{}
	for _, server := range servers {
		state, err := member(ctx, server, security)
		if err != nil {
			e.bad(Finding{Fail, "etcd", server, err.Error(), "see whether this member runs, and whether its certificate and the one shown to it are good"})
			continue
		}
		states[server] = state
		e.member(server, state)
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
		e.bad(Finding{Warn, "etcd", "members", "they do not agree about their leader", "ask again; if it stays, see whether they reach each other"})
	}
	if len(versions) > 1 {
		e.bad(Finding{Warn, "etcd", "members", "they are of different versions", "finish the upgrade of etcd"})
	}
	for server, s := range states {
		if newest-s.RaftAppliedIndex > behind {
			e.bad(Finding{Warn, "etcd", server, fmt.Sprintf("%d entries behind the others", newest-s.RaftAppliedIndex), "look at its disk and the network to the leader"})
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
func (e *examination) member(server string, s *clientv3.StatusResponse) {
	for _, alarm := range s.Errors {
		advice := "see etcd's log"
		switch {
		case strings.Contains(alarm, etcdserverpb.AlarmType_NOSPACE.String()):
			advice = "delete objects, compact, defragment and disarm: docs/storage.md"
		case strings.Contains(alarm, etcdserverpb.AlarmType_CORRUPT.String()):
			advice = "members differ: replace the one that is wrong, or restore a backup: docs/operations/backup.md"
		}
		e.bad(Finding{Fail, "etcd", server, "alarm: " + alarm, advice})
	}
	switch {
	case s.Leader == 0:
		e.bad(Finding{Fail, "etcd", server, "has no leader", "see whether most members run and reach each other"})
	case s.IsLearner:
		e.bad(Finding{Warn, "etcd", server, "is a learner", "promote it once it has caught up"})
	case len(s.Errors) == 0:
		e.ok("etcd", server, "version %s, no alarm", s.Version)
	}
	if s.DbSizeQuota > 0 {
		e.room(server, float64(s.DbSizeInUse)/float64(s.DbSizeQuota), "etcd's --quota-backend-bytes")
	}
}
