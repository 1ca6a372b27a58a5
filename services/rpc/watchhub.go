package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	pb "github.com/portico-platform/portico/services/rpc/porticov1"
)

type watchHubServer struct {
	pb.UnsafeWatchHubServer
	impl services.WatchHub
}

func serveWatchHub(s grpc.ServiceRegistrar, impl services.WatchHub) {
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

type watchHubClient struct{ peer pb.WatchHubClient }

func newWatchHubClient(c grpc.ClientConnInterface) services.WatchHub {
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

var (
	_ pb.WatchHubServer = watchHubServer{}
	_ services.WatchHub = watchHubClient{}
)
