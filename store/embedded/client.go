package embedded

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
)

// connect returns a client that calls the member without a network, and a function that ends
// it. That function waits for the watches: each reads the previous value of an object when it
// delivers an event, which panics once the member has closed its database.
func connect(member *etcdserver.EtcdServer) (*clientv3.Client, func()) {
	client := v3client.New(member)
	watches := &watches{WatchServer: v3rpc.NewWatchServer(member)}
	client.Watcher = clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(watches), client)
	return client, func() {
		// There is no connection to close; Close returns the error of the client's context.
		_ = client.Close()
		watches.running.Wait()
	}
}

// watches counts the watches that are served.
type watches struct {
	pb.WatchServer
	running sync.WaitGroup
}

// Watch implements pb.WatchServer.
func (w *watches) Watch(stream pb.Watch_WatchServer) error {
	w.running.Add(1)
	defer w.running.Done()
	return w.WatchServer.Watch(stream)
}
