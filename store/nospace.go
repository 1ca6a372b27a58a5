package store

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
)

// afterNoSpace finds out what became of a put that etcd answered with "no space":
// the put that reaches the quota is applied all the same. It returns the answer of
// the transaction if it was, InsufficientStorage (507) if it was not, and Timeout
// (504) when that can no longer be told.
func (s *Store) afterNoSpace(ctx context.Context, refusal error, revision int64, put clientv3.Op) (*clientv3.TxnResponse, error) {
	answer, err := s.client.Get(ctx, string(put.KeyBytes()))
	if err != nil {
		return nil, services.Timeout("etcd has no space left, and the outcome is not known: %v", err)
	}
	var current int64
	if len(answer.Kvs) > 0 {
		current = answer.Kvs[0].ModRevision
	}
	switch {
	case current == revision:
		return nil, failure(refusal)
	case current != 0 && string(answer.Kvs[0].Value) == string(put.ValueBytes()):
		return &clientv3.TxnResponse{Succeeded: true, Header: &etcdserverpb.ResponseHeader{Revision: current}}, nil
	}
	return nil, services.Timeout("etcd has no space left, and the outcome is not known because the object has changed since")
}
