package store

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/object"
	"github.com/portico-platform/portico/store/internal/swap"
)

// Create is Store.Create.
func (s *cluster) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	further, err := conditions(r.Key, r.Requires)
	if err != nil {
		return services.Object{}, err
	}
	w, o, err := s.put(ctx, r.Key, r.Content, swap.Swap{Attempt: r.Attempt, Further: further})
	switch {
	case err != nil:
		return services.Object{}, err
	case o.Done:
		return w.Stored(o.Revision), nil
	case o.Value == nil:
		return services.Object{}, prevented(r.Key, r.Requires)
	}
	return services.Object{}, services.AlreadyExists(r.Key.Group, r.Key.Resource, r.Key.Name)
}

// Update is Store.Update.
func (s *cluster) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	if r.Revision <= 0 {
		return services.Object{}, services.BadRequest("%s: an update needs the revision that it replaces", r.Key)
	}
	further, err := conditions(r.Key, r.Requires)
	if err != nil {
		return services.Object{}, err
	}
	if r.Unchanged && !r.Attempt.Repeated {
		if stale, err := s.stale(ctx, r.Key); err != nil {
			return services.Object{}, err
		} else if !stale {
			w, err := s.codec.New(r.Key, r.Content, object.Mark{})
			return w.Stored(r.Revision), err
		}
	}
	w, o, err := s.put(ctx, r.Key, r.Content, swap.Swap{Attempt: r.Attempt, Revision: r.Revision, Further: further})
	switch {
	case err != nil:
		return services.Object{}, err
	case o.Done:
		return w.Stored(o.Revision), nil
	case o.Value == nil:
		return services.Object{}, notFound(r.Key)
	case o.Value.ModRevision == r.Revision:
		return services.Object{}, prevented(r.Key, r.Requires)
	}
	return services.Object{}, services.ConflictModified(r.Key.Group, r.Key.Resource, r.Key.Name)
}

// stale reports whether an object is encrypted in another way than the configuration says.
func (s *cluster) stale(ctx context.Context, key resource.Key) (bool, error) {
	path := key.Path()
	if err := object.CheckKey(key); err != nil || !s.codec.Values.Rotates(path) {
		return false, err
	}
	answer, err := s.get(ctx, "get", path)
	if err != nil {
		return false, failure(err)
	}
	return len(answer.Kvs) > 0 && s.codec.Values.Stale(path, answer.Kvs[0].Value), nil
}

// conditions returns what a write requires as conditions of its transaction. BadRequest
// (400) if they are invalid.
func conditions(key resource.Key, requires []services.Requirement) (further []clientv3.Cmp, err error) {
	if len(requires) > services.MaxRequirements {
		return nil, services.BadRequest("%s: %d requirements are more than %d", key, len(requires), services.MaxRequirements)
	}
	for _, r := range requires {
		if err := object.CheckKey(r.Key); err != nil {
			return nil, err
		}
		if r.Revision <= 0 {
			return nil, services.BadRequest("%s: the requirement %s has no revision", key, r.Key)
		}
		further = append(further, clientv3.Compare(clientv3.ModRevision(r.Key.Path()), "=", r.Revision))
	}
	return further, nil
}

// prevented returns the error of a write that was not applied although the object is
// still what it replaces: because of its requirements, or else of its fence. Neither
// lets it be applied later.
func prevented(key resource.Key, requires []services.Requirement) error {
	if len(requires) == 0 {
		return notDone(key)
	}
	first := requires[0].Key
	return services.ConflictModified(first.Group, first.Resource, first.Name)
}

// ttl returns how long an object is stored after it was written; 0 for ever.
func (s *cluster) ttl(key resource.Key) time.Duration {
	if key.GroupResource == (resource.GroupResource{Resource: "events"}) { // those of events.k8s.io too are stored in this group
		return s.eventTTL
	}
	return 0
}

// put performs a write that stores an object.
func (s *cluster) put(ctx context.Context, key resource.Key, content services.Content, do swap.Swap) (w object.Write, o swap.Outcome, err error) {
	if do.Attempt, err = swap.CheckAttempt(do.Attempt); err != nil {
		return w, o, err
	}
	if w, err = s.codec.New(key, content, object.Mark{ID: do.Attempt.ID, Trace: tracing.Mark(ctx)}); err != nil {
		return w, o, err
	}
	do.Path, do.Value, do.TTL = w.Path, w.Value, s.ttl(key)
	if o, err = s.swaps.Do(ctx, do); err != nil {
		return w, o, writeFailure(err)
	}
	return w, o, nil
}

// Delete is Store.Delete. It first tries the revision in the mirror, which may
// be stale: errors are based on etcd's state only. What cannot be read is removed only at the revision that the
// caller names, who knows of it: it may have finalizers.
func (s *cluster) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	if err := object.CheckKey(r.Key); err != nil {
		return services.Object{}, err
	}
	attempt, err := swap.CheckAttempt(r.Attempt)
	if err != nil {
		return services.Object{}, err
	}
	do := swap.Swap{Attempt: attempt, Path: r.Key.Path(), Revision: r.Revision}
	if !attempt.Repeated { // the first attempt may have used another revision
		do.Revision = 0
		if guess, ok := s.mirror.Snapshot().Get(do.Path); ok && !object.Unreadable(guess) && precondition(r, guess) == nil {
			do.Revision = guess.Revision
		}
	}
	for {
		o, err := s.remove(ctx, do)
		switch {
		case err != nil:
			return services.Object{}, err
		case o.Value == nil:
			return services.Object{}, notFound(r.Key)
		case o.Done:
			return s.codec.Decode(do.Path, o.Value.Value, o.Revision)
		}
		current, err := s.codec.Decode(do.Path, o.Value.Value, o.Value.ModRevision)
		if err != nil {
			return services.Object{}, err
		}
		if object.Unreadable(&current) && (r.UID != "" || r.Revision != current.Revision) {
			return services.Object{}, current.Err()
		}
		if err := precondition(r, &current); err != nil {
			return services.Object{}, err
		}
		if o.Dead {
			return services.Object{}, notDone(r.Key)
		}
		do.Revision = current.Revision
	}
}

// remove performs a deletion, or reads the object first if it is not known.
func (s *cluster) remove(ctx context.Context, do swap.Swap) (swap.Outcome, error) {
	if do.Revision != 0 || do.Attempt.Repeated {
		o, err := s.swaps.Do(ctx, do)
		if err != nil {
			return o, writeFailure(err)
		}
		return o, nil
	}
	answer, err := s.get(ctx, "get", do.Path)
	if err != nil {
		return swap.Outcome{}, failure(err)
	}
	if len(answer.Kvs) == 0 {
		return swap.Outcome{}, nil
	}
	return swap.Outcome{Value: answer.Kvs[0]}, nil
}

// precondition returns Conflict (409) if the preconditions of a deletion do not match.
func precondition(r services.DeleteRequest, o *services.Object) error {
	if r.UID != "" && r.UID != o.UID {
		return mismatch(r.Key, "UID", r.UID, o.UID)
	}
	if r.Revision != 0 && r.Revision != o.Revision {
		return mismatch(r.Key, "ResourceVersion", resource.FormatResourceVersion(r.Revision), resource.FormatResourceVersion(o.Revision))
	}
	return nil
}

func (s *cluster) decode(path string, kv *mvccpb.KeyValue, revision int64) (services.Object, error) {
	o, err := s.codec.Decode(path, kv.Value, revision)
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return services.Object{}, services.AsStatus(err)
	}
	return o, nil
}
