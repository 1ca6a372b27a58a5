package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// hedgeAfter is how long a read may take before it is also sent to other members: much longer
	// than a read of one key takes.
	hedgeAfter = 500 * time.Millisecond
	// together is how many requests are then sent at once, to members that follow each other: other
	// requests may take every second turn, that of the members that respond.
	together = 2
	// maxReads is how many times a read is sent at most.
	maxReads = 1 + 3*together
)

// Hedged returns the client's KV. A Get that has not been answered within half a second is sent
// again, twice, while the first one goes on, and the first response counts: a member of the cluster
// whose disk hangs keeps its connections, and the client sends it every nth request. Get must be of
// few values. Without a client, as in tests, it returns nil.
func Hedged(client *clientv3.Client) clientv3.KV {
	if client == nil {
		return nil
	}
	return hedged{client.KV, client.Endpoints}
}

type hedged struct {
	clientv3.KV
	endpoints func() []string
}

// read is the result of one request.
type read struct {
	answer *clientv3.GetResponse
	err    error
}

// Get implements clientv3.KV. An etcd in this process, or with one endpoint, is called once.
func (h hedged) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if len(h.endpoints()) < 2 {
		return h.KV.Get(ctx, key, options...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent, pending := 0, 0
	reads := make(chan read, maxReads)
	ask := func() {
		sent++
		pending++
		go func() {
			answer, err := h.KV.Get(ctx, key, options...)
			reads <- read{answer, err}
		}()
	}
	again := time.NewTicker(hedgeAfter)
	defer again.Stop()
	for ask(); ; {
		select {
		case r := <-reads:
			if pending--; r.err == nil || pending == 0 {
				return r.answer, r.err
			}
		case <-again.C:
			for range min(together, maxReads-sent) {
				ask()
			}
		}
	}
}
