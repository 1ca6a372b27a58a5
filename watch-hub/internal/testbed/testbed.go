// Package testbed provides etcd and NATS for the tests of the watch hub, and writes objects
// like the store. It serves the tests of "Watch procedure".
package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

const startTimeout = 20 * time.Second

// Random returns a source of random numbers for a test, and logs its seed. The
// environment variable SEED sets the seed.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Etcd is an etcd member for one test.
type Etcd struct {
	*clientv3.Client
	t testing.TB
}

// StartEtcd starts an empty member that the test calls without a network.
func StartEtcd(t testing.TB) *Etcd {
	t.Helper()
	client, disconnect := connect(startMember(t, nil).Server)
	t.Cleanup(disconnect)
	return &Etcd{Client: client, t: t}
}

// StartRemoteEtcd starts an empty member that the test calls over gRPC, with further options.
func StartRemoteEtcd(t testing.TB, options ...grpc.DialOption) *Etcd {
	t.Helper()
	member := startMember(t, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{member.Clients[0].Addr().String()}, Logger: zap.NewNop(), DialOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &Etcd{Client: client, t: t}
}

func startMember(t testing.TB, listen []url.URL) *embed.Etcd {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.ListenPeerUrls, c.ListenClientUrls = nil, listen
	if listen != nil {
		c.AdvertiseClientUrls = listen
	}
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = true
	c.AutoCompactionRetention = "0"
	c.LogLevel, c.LogOutputs = "fatal", []string{"/dev/null"}
	member, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(startTimeout):
		t.Fatal("etcd does not start")
	}
	return member
}

// Write stores an object as the store does, with one label and one field, and
// returns the revision. Any goroutine may call it.
func (e *Etcd) Write(key resource.Key, value string) int64 {
	e.t.Helper()
	response, err := e.Put(context.Background(), key.Path(), string(Record(key, value)))
	if err != nil {
		e.t.Errorf("writing %s: %v", key, err)
		return 0
	}
	return response.Header.Revision
}

// Remove deletes an object and returns the revision. Any goroutine may call it.
func (e *Etcd) Remove(key resource.Key) int64 {
	e.t.Helper()
	response, err := e.Delete(context.Background(), key.Path())
	if err != nil || response.Deleted != 1 {
		e.t.Errorf("deleting %s: %+v, %v", key, response, err)
		return 0
	}
	return response.Header.Revision
}

// Record returns the etcd value of an object whose spec has a value.
func Record(key resource.Key, value string) []byte {
	object, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace}, "spec": map[string]any{"value": value},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	at, err := tree.MetadataOffset(object)
	if err != nil {
		panic(err)
	}
	labels := map[string]string{"value": value}
	if len(value) > 63 {
		labels = nil
	}
	return resource.EncodeRecord(resource.Record{UID: "uid-of-" + key.Name, Labels: labels, Fields: labels, At: at, JSON: object})
}

// NATS is a server that can be restarted at its address.
type NATS struct {
	t      testing.TB
	port   int
	loss   uint8 // percent of the messages about changes
	server *server.Server
}

// StartNATS starts a server on a free port.
func StartNATS(t testing.TB) *NATS {
	t.Helper()
	n := &NATS{t: t, port: server.RANDOM_PORT}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Start starts the server at its previous address.
func (n *NATS) Start() {
	n.t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: n.port, NoLog: true, NoSigs: true})
	if err != nil {
		n.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		n.t.Fatal("NATS does not start")
	}
	n.server, n.port = s, s.Addr().(*net.TCPAddr).Port
	n.Lose(n.loss)
}

// Lose makes the server lose a percentage of the messages about changes.
func (n *NATS) Lose(percent uint8) {
	n.t.Helper()
	n.loss = percent
	err := n.server.GlobalAccount().AddWeightedMappings("changes.>", server.NewMapDest("changes.>", 100-percent))
	if err != nil {
		n.t.Fatal(err)
	}
}

// Stop stops the server and drops everything that it had not delivered.
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// Connect returns a connection that survives restarts of the server.
func (n *NATS) Connect() *nats.Conn {
	n.t.Helper()
	conn, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", n.port), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(conn.Close)
	return conn
}

// ConnectPrivately returns a connection as that of one process with its embedded server.
func (n *NATS) ConnectPrivately() *nats.Conn {
	n.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(bus.NewLocal(n.server)))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(conn.Close)
	return conn
}
