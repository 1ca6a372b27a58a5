package store

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/object"
)

// Create implements services.Store.
func (s *Store) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	w, err := object.New(r.Key, r.Content)
	if err != nil {
		return services.Object{}, err
	}
	answer, err := s.swap(ctx, w.Path, 0, clientv3.OpPut(w.Path, w.Value))
	if err != nil {
		return services.Object{}, err
	}
	if !answer.Succeeded {
		return services.Object{}, services.AlreadyExists(r.Key.Group, r.Key.Resource, r.Key.Name)
	}
	return w.Stored(answer.Header.Revision), nil
}

// Update implements services.Store.
func (s *Store) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	w, err := object.New(r.Key, r.Content)
	if err != nil {
		return services.Object{}, err
	}
	if r.Revision <= 0 {
		return services.Object{}, services.BadRequest("%s: an update needs the revision that it replaces", r.Key)
	}
	answer, err := s.swap(ctx, w.Path, r.Revision, clientv3.OpPut(w.Path, w.Value))
	switch {
	case err != nil:
		return services.Object{}, err
	case answer.Succeeded:
		return w.Stored(answer.Header.Revision), nil
	case found(answer) == nil:
		return services.Object{}, notFound(r.Key)
	}
	return services.Object{}, services.ConflictModified(r.Key.Group, r.Key.Resource, r.Key.Name)
}

// Delete implements services.Store. What the mirror holds is a good guess of what
// is deleted, and the transaction checks it; only etcd's word makes an error.
func (s *Store) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	if err := object.CheckKey(r.Key); err != nil {
		return services.Object{}, err
	}
	path := r.Key.Path()
	var revision int64
	if guess, ok := s.mirror.Snapshot().Get(path); ok && precondition(r, guess) == nil {
		revision = guess.Revision
	}
	for {
		answer, err := s.swap(ctx, path, revision, clientv3.OpDelete(path, clientv3.WithPrevKV()))
		if err != nil {
			return services.Object{}, err
		}
		if answer.Succeeded && revision != 0 {
			kv := answer.Responses[0].GetResponseDeleteRange().PrevKvs[0]
			return decode(path, kv, answer.Header.Revision)
		}
		kv := found(answer)
		if kv == nil {
			return services.Object{}, notFound(r.Key)
		}
		current, err := decode(path, kv, kv.ModRevision)
		if err != nil {
			return services.Object{}, err
		}
		if err := precondition(r, &current); err != nil {
			return services.Object{}, err
		}
		revision = current.Revision
	}
}

// precondition returns the Conflict of a deletion that asks for another object.
func precondition(r services.DeleteRequest, o *services.Object) error {
	if r.UID != "" && r.UID != o.UID {
		return mismatch(r.Key, "UID", r.UID, o.UID)
	}
	if r.Revision != 0 && r.Revision != o.Revision {
		return mismatch(r.Key, "ResourceVersion", resource.FormatVersion(r.Revision), resource.FormatVersion(o.Revision))
	}
	return nil
}

// swap does op if the value at path is of a revision, 0 meaning that there is
// none, and else reads what is there.
func (s *Store) swap(ctx context.Context, path string, revision int64, op clientv3.Op) (*clientv3.TxnResponse, error) {
	done := s.metrics.timeEtcd("txn")
	answer, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(path), "=", revision)).
		Then(op).
		Else(clientv3.OpGet(path)).
		Commit()
	done(err)
	if errors.Is(err, rpctypes.ErrNoSpace) && op.IsPut() {
		return s.afterNoSpace(ctx, err, revision, op)
	}
	if err != nil {
		return nil, failure(err)
	}
	return answer, nil
}

// found returns what a swap that failed has read; nil when there is nothing.
func found(answer *clientv3.TxnResponse) *mvccpb.KeyValue {
	if answer.Succeeded {
		return nil
	}
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

func decode(path string, kv *mvccpb.KeyValue, revision int64) (services.Object, error) {
	o, err := object.Decode(path, kv.Value, revision)
	if err != nil {
		return services.Object{}, services.AsStatus(err)
	}
	return o, nil
}
