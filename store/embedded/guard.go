package embedded

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// guarded is etcd's key-value store that takes no new values while there is no room.
type guarded struct {
	clientv3.KV
	room func() error // NoSpace when there is none
}

// Put implements clientv3.KV.
func (g *guarded) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if err := g.room(); err != nil {
		return nil, err
	}
	return g.KV.Put(ctx, key, value, opts...)
}

// Do implements clientv3.KV.
func (g *guarded) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if puts(op) {
		if err := g.room(); err != nil {
			return clientv3.OpResponse{}, err
		}
	}
	return g.KV.Do(ctx, op)
}

// Txn implements clientv3.KV.
func (g *guarded) Txn(ctx context.Context) clientv3.Txn {
	return &guardedTxn{Txn: g.KV.Txn(ctx), room: g.room}
}

// guardedTxn is a transaction that is refused when it may put anything.
type guardedTxn struct {
	clientv3.Txn
	room func() error
	puts bool
}

// If implements clientv3.Txn.
func (t *guardedTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(conditions...)
	return t
}

// Then implements clientv3.Txn.
func (t *guardedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.puts = t.Txn.Then(ops...), t.puts || puts(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *guardedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.puts = t.Txn.Else(ops...), t.puts || puts(ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t *guardedTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.puts {
		if err := t.room(); err != nil {
			return nil, err
		}
	}
	return t.Txn.Commit()
}

func puts(ops ...clientv3.Op) bool {
	for _, op := range ops {
		if op.IsPut() {
			return true
		}
		if op.IsTxn() {
			_, then, otherwise := op.Txn()
			if puts(then...) || puts(otherwise...) {
				return true
			}
		}
	}
	return false
}

var (
	_ clientv3.KV  = (*guarded)(nil)
	_ clientv3.Txn = (*guardedTxn)(nil)
)
