package embedded

import (
	"context"
	"expvar"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// electPause is the pause between two reads of the state of a member that applies its log.
const electPause = time.Millisecond

// starting is held from the start of a member until it leads: etcd publishes the state of
// raft only of the member that was started last in a process.
var starting = sync.OnceValue(func() *sync.Mutex { return &sync.Mutex{} })

// startElected starts a member and returns when it leads, has stopped, or ctx ends. etcd panics where it cannot write its
// files, as on a full disk: that is an error like others, of a process that has not started.
func startElected(ctx context.Context, c *embed.Config) (member *embed.Etcd, err error) {
	starting().Lock()
	defer starting().Unlock()
	defer func() {
		if p := recover(); p != nil {
			member, err = nil, fmt.Errorf("%v", p)
			if cause, ok := p.(error); ok {
				err = cause
			}
		}
	}()
	member, err = embed.StartEtcd(c)
	if err == nil {
		elect(ctx, member.Server)
	}
	return member, err
}

// elect lets the member elect itself as soon as it has applied its log, so that the start
// does not wait for an election timeout.
//
// An earlier election panics: raft searches unapplied entries for changes of the membership,
// also those that etcd has already applied and compacted, but not yet reported to raft as applied.
// Therefore raft's own view of what is applied decides, not that of etcd.
func elect(ctx context.Context, member *etcdserver.EtcdServer) {
	id := uint64(member.MemberID())
	pauses := time.NewTicker(electPause)
	defer pauses.Stop()
	for member.Lead() != id {
		if state, ok := raftState(); ok && state.ID == id && state.Applied >= state.GetCommit() && state.RaftState == raft.StateFollower {
			// Of the messages between members, this one starts an election. If it fails,
			// the election timeout does.
			_ = member.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &id, To: &id})
		}
		select {
		case <-pauses.C:
		case <-member.StopNotify():
			return
		case <-ctx.Done():
			return
		}
	}
}

// raftState returns what etcd publishes about raft of the member that was started last.
func raftState() (raft.Status, bool) {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}, false
	}
	state, ok := published().(raft.Status)
	return state, ok
}
