package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

// EncodeChange encodes a change for the bus.
func EncodeChange(c services.Change) ([]byte, error) {
	return proto.Marshal(changeOut(c))
}

// DecodeChange decodes a message of EncodeChange. The Change does not share memory with it.
func DecodeChange(message []byte) (services.Change, error) {
	var m pb.Change
	if err := proto.Unmarshal(message, &m); err != nil {
		return services.Change{}, fmt.Errorf("not a change: %w", err)
	}
	return changeIn(&m)
}

// EncodeProgress encodes a progress report for the bus.
func EncodeProgress(p services.Progress) ([]byte, error) {
	m := &pb.Progress{Through: p.Through, Floor: p.Floor, Epoch: p.Epoch, Only: each(p.Only, groupResourceOut), Except: each(p.Except, groupResourceOut)}
	for gr, revision := range p.Heads {
		m.Heads = append(m.Heads, &pb.Head{GroupResource: groupResourceOut(gr), Revision: revision})
	}
	return proto.Marshal(m)
}

// DecodeProgress decodes a message of EncodeProgress.
func DecodeProgress(message []byte) (services.Progress, error) {
	var m pb.Progress
	if err := proto.Unmarshal(message, &m); err != nil {
		return services.Progress{}, fmt.Errorf("not a progress: %w", err)
	}
	p := services.Progress{Through: m.GetThrough(), Floor: m.GetFloor(), Epoch: m.GetEpoch(), Heads: make(map[resource.GroupResource]int64, len(m.GetHeads()))}
	p.Only, p.Except = each(m.GetOnly(), groupResourceIn), each(m.GetExcept(), groupResourceIn)
	for _, head := range m.GetHeads() {
		p.Heads[groupResourceIn(head.GetGroupResource())] = head.GetRevision()
	}
	return p, nil
}

func changeOut(c services.Change) *pb.Change {
	return &pb.Change{Type: pb.ChangeType(c.Type), Previous: c.Previous, Object: objectOut(c.Object),
		OldLabels: c.OldLabels, OldFields: c.OldFields, OldJson: c.OldJSON, Trace: c.Trace}
}

// changeIn returns an error for unknown change types: a watcher must not guess what a change means.
func changeIn(m *pb.Change) (services.Change, error) {
	if m.GetType() < pb.ChangeType_ADDED || m.GetType() > pb.ChangeType_DELETED {
		return services.Change{}, errors.New("not a change: it has no type that is known here")
	}
	return services.Change{Type: services.ChangeType(m.GetType()), Previous: m.GetPrevious(), Object: objectIn(m.GetObject()),
		OldLabels: m.GetOldLabels(), OldFields: m.GetOldFields(), OldJSON: m.GetOldJson(), Trace: m.GetTrace()}, nil
}
