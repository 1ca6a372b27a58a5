package embedded

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// guarded wraps etcd's KV and rejects writes while there is no space.
type guarded struct {
	clientv3.KV
	room room
}

// room returns NoSpace if there is no space for a put, or for a deletion or compaction,
// which need less.
type room func(put bool) error

// Put implements clientv3.KV.
func (g *guarded) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if err := g.room(true); err != nil {
		return nil, err
	}
	return g.KV.Put(ctx, key, value, opts...)
}

// Delete implements clientv3.KV.
func (g *guarded) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if err := g.room(false); err != nil {
		return nil, err
	}
	return g.KV.Delete(ctx, key, opts...)
}

// Compact implements clientv3.KV.
func (g *guarded) Compact(ctx context.Context, revision int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	if err := g.room(false); err != nil {
		return nil, err
	}
	return g.KV.Compact(ctx, revision, opts...)
}

// Do implements clientv3.KV.
func (g *guarded) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if put, write := changes(op); write {
		if err := g.room(put); err != nil {
			return clientv3.OpResponse{}, err
		}
	}
	return g.KV.Do(ctx, op)
}

// Txn implements clientv3.KV.
func (g *guarded) Txn(ctx context.Context) clientv3.Txn {
	return &guardedTxn{Txn: g.KV.Txn(ctx), room: g.room}
}

// guardedTxn is a transaction that is rejected if there is no space for the operations in
// any of its branches.
type guardedTxn struct {
	clientv3.Txn
	room room
	ops  []clientv3.Op
}

// If implements clientv3.Txn.
func (t *guardedTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(conditions...)
	return t
}

// Then implements clientv3.Txn.
func (t *guardedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.ops = t.Txn.Then(ops...), append(t.ops, ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *guardedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.ops = t.Txn.Else(ops...), append(t.ops, ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t *guardedTxn) Commit() (*clientv3.TxnResponse, error) {
	if put, write := changes(t.ops...); write {
		if err := t.room(put); err != nil {
			return nil, err
		}
	}
	return t.Txn.Commit()
}

// changes reports whether operations may put anything, and whether they may write at
// all.
func changes(ops ...clientv3.Op) (put, write bool) {
	for _, op := range ops {
		if op.IsTxn() {
			_, then, otherwise := op.Txn()
			p, w := changes(append(then[:len(then):len(then)], otherwise...)...)
			put, write = put || p, write || w
		}
		put, write = put || op.IsPut(), write || op.IsPut() || op.IsDelete()
	}
	return put, write
}

var (
	_ clientv3.KV  = (*guarded)(nil)
	_ clientv3.Txn = (*guardedTxn)(nil)
)
