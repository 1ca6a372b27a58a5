package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hedgeAfter is how long a read may take before it is also sent to another member: much longer
// than a read of one key takes.
const hedgeAfter = 500 * time.Millisecond

// Hedged returns the client's KV. A Get that has not been answered within half a second is sent
// again while the first one goes on, and the first response counts: a member of the cluster whose
// disk hangs keeps its connections, and the client sends it every nth request. Get must be of few
// values.
func Hedged(client *clientv3.Client) clientv3.KV { return hedged{client.KV, client.Endpoints} }

type hedged struct {
	clientv3.KV
	endpoints func() []string
}

// read is the result of one request.
type read struct {
	answer *clientv3.GetResponse
	err    error
}

// Get implements clientv3.KV. An etcd in this process, or with one endpoint, is asked once.
func (h hedged) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	members := len(h.endpoints())
	if members < 2 {
		return h.KV.Get(ctx, key, options...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Requests of others may have the turn of the other members, so each member gets a chance, and one more.
	left, pending := members+1, 0
	reads := make(chan read, left)
	again := time.NewTicker(hedgeAfter)
	defer again.Stop()
	ask := func() {
		left--
		pending++
		go func() {
			answer, err := h.KV.Get(ctx, key, options...)
			reads <- read{answer, err}
		}()
	}
	for ask(); ; {
		select {
		case r := <-reads:
			if pending--; r.err == nil || pending == 0 {
				return r.answer, r.err
			}
		case <-again.C:
			if left > 0 {
				ask()
			}
		}
	}
}
