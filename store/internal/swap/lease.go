package swap

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// revokeWithin is the timeout for returning a lease. One that is not returned expires by itself.
const revokeWithin = 5 * time.Second

// grant returns a lease that ends after TTL; 0 for a value that stays.
//
// Each value has its own lease. etcd deletes all keys of a lease at one revision, and followers rely on each
// change of a type having its own revision.
func (s *Swapper) grant(ctx context.Context, w Swap) (clientv3.LeaseID, error) {
	if w.TTL == 0 {
		return 0, nil
	}
	ctx, done := s.Time(ctx, "grant")
	lease, err := s.Client.Grant(ctx, int64((w.TTL+time.Second-1)/time.Second))
	done(err)
	if err != nil {
		return 0, err
	}
	return lease.ID, nil
}

// revoke returns the lease of a write that was not applied, or that of the value that it has replaced, so
// that repeated writes of one object hold one lease. It does not wait.
func (s *Swapper) revoke(lease clientv3.LeaseID) {
	if lease == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), revokeWithin)
		defer cancel()
		_, _ = s.Client.Revoke(ctx, lease)
	}()
}

// unused returns the lease that the transaction leaves without a key: its own if it was not applied, and
// else that of the value before.
func (w Swap) unused(answer *clientv3.TxnResponse, lease clientv3.LeaseID) clientv3.LeaseID {
	if !answer.Succeeded {
		return lease
	}
	if before := answer.Responses[0].GetResponsePut(); lease != 0 && before.GetPrevKv() != nil {
		return clientv3.LeaseID(before.PrevKv.Lease)
	}
	return 0
}
