package embedded

import (
	"context"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3/raftpb"
)

// electPause is the pause between attempts to start an election. The first ones fail while
// the member reads its log.
const electPause = 2 * time.Millisecond

// elect starts elections until the member leads, so that its start does not wait for an
// election timeout. It returns when the member leads, has stopped, or ctx ends.
func elect(ctx context.Context, member *etcdserver.EtcdServer) {
	id := uint64(member.MemberID())
	pauses := time.NewTicker(electPause)
	defer pauses.Stop()
	for member.Lead() != id {
		// Of the messages of other members, this one starts an election. If it fails, the
		// election timeout does.
		_ = member.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &id, To: &id})
		select {
		case <-pauses.C:
		case <-member.StopNotify():
			return
		case <-ctx.Done():
			return
		}
	}
}
