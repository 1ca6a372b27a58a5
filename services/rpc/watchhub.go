package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type watchHubServer struct {
	pb.UnsafeWatchHubServer
	impl services.WatchHub
}

func RegisterWatchHub(s grpc.ServiceRegistrar, impl services.WatchHub) {
	pb.RegisterWatchHubServer(s, watchHubServer{impl: impl})
}

func (s watchHubServer) Replay(ctx context.Context, m *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	replay, err := s.impl.Replay(ctx, services.ReplayRequest{
		GroupResource: groupResourceIn(m.GetGroupResource()), After: m.GetAfter(), Limit: int(m.GetLimit()),
	})
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.ReplayResponse{Changes: each(replay.Changes, changeOut), Through: replay.Through, More: replay.More, Epoch: replay.Epoch}, nil
}

func (s watchHubServer) Keys(ctx context.Context, m *pb.KeysRequest) (*pb.KeysResponse, error) {
	keys, err := s.impl.Keys(ctx, services.KeysRequest{GroupResource: groupResourceIn(m.GetGroupResource()), ID: m.GetId()})
	if err != nil {
		return nil, errorOut(err)
	}
	return &pb.KeysResponse{Keys: each(keys.Keys, busKeyOut)}, nil
}

type watchHubClient struct{ peer pb.WatchHubClient }

func NewWatchHub(c grpc.ClientConnInterface) services.WatchHub {
	return watchHubClient{pb.NewWatchHubClient(c)}
}

func (c watchHubClient) Replay(ctx context.Context, r services.ReplayRequest) (services.Replay, error) {
	m, err := c.peer.Replay(ctx, &pb.ReplayRequest{
		GroupResource: groupResourceOut(r.GroupResource), After: r.After, Limit: int64(r.Limit),
	})
	if err != nil {
		return services.Replay{}, errorIn(ctx, "watch-hub", err)
	}
	replay := services.Replay{Through: m.GetThrough(), More: m.GetMore(), Epoch: m.GetEpoch()}
	for _, message := range m.GetChanges() {
		change, err := changeIn(message)
		if err != nil {
			return services.Replay{}, faultf("watch-hub: %v", err)
		}
		replay.Changes = append(replay.Changes, change)
	}
	return replay, nil
}

func (c watchHubClient) Keys(ctx context.Context, r services.KeysRequest) (services.Keys, error) {
	m, err := c.peer.Keys(ctx, &pb.KeysRequest{GroupResource: groupResourceOut(r.GroupResource), Id: r.ID})
	if err != nil {
		return services.Keys{}, errorIn(ctx, "watch-hub", err)
	}
	return services.Keys{Keys: each(m.GetKeys(), busKeyIn)}, nil
}

func busKeyOut(k services.BusKey) *pb.BusKey {
	return &pb.BusKey{Id: k.ID, Changes: k.Changes, Progress: k.Progress, Public: k.Public, Lifetime: durationpb.New(k.Lifetime)}
}

func busKeyIn(m *pb.BusKey) services.BusKey {
	return services.BusKey{
		ID: m.GetId(), Changes: m.GetChanges(), Progress: m.GetProgress(), Public: m.GetPublic(), Lifetime: m.GetLifetime().AsDuration(),
	}
}

var (
	_ pb.WatchHubServer = watchHubServer{}
	_ services.WatchHub = watchHubClient{}
)
