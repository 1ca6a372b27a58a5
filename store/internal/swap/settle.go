package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// settleWithin is the timeout for determining an outcome. It is longer than a leader
	// election.
	settleWithin = 5 * time.Second
	// tryWithin bounds one attempt, so that a dead connection does not use up all of
	// the time.
	tryWithin = 2 * time.Second
	retryWait = 50 * time.Millisecond
	// fenceSeconds is the TTL of a fence's lease: much longer than a transaction can be
	// in flight.
	fenceSeconds = 3600
	// progressEvery is the interval of progress requests to etcd while history is read.
	progressEvery = 20 * time.Millisecond
)

// refused reports whether etcd or its client rejected a transaction without applying any
// of it.
func refused(err error) bool {
	var unsent *NotSent
	return errors.As(err, &unsent) || TooLarge(err) || errors.Is(err, rpctypes.ErrTooManyRequests) ||
		errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrInvalidAuthToken)
}

// TooLarge reports whether etcd or its client rejected the size of a request.
func TooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// settle determines the outcome of a transaction whose response was lost because of
// cause. read reads the current state, and may put a fence, after which the transaction
// cannot be applied.
func (s *Swapper) settle(ctx context.Context, w Swap, cause error, read func(context.Context, Swap) (present, error)) (Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Within)
	defer cancel()
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	settling, done := s.Time(ctx, "settle")
	for {
		o, err := s.try(settling, w, read)
		if err == nil || final(err) || !retry.Pause(settling, retryWait) {
			done(err)
			if err != nil {
				err = services.OutcomeUnknown("%v; then: %v", cause, err)
			}
			return o, err
		}
	}
}

// errRewound means that etcd's revision is lower than one seen before: it was restored
// from a backup.
var errRewound = errors.New("etcd has gone back to an earlier revision")

// final reports whether the error is permanent.
func final(err error) bool {
	return errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errRewound)
}

// present is etcd's state at a revision.
type present struct {
	revision    int64
	value, mark *mvccpb.KeyValue
}

// fence puts the fence, after which the transaction cannot be applied, and reads the
// current state. It is idempotent.
func (s *Swapper) fence(ctx context.Context, w Swap) (present, error) {
	lease, err := s.Client.Grant(ctx, fenceSeconds)
	if err != nil {
		return present{}, fmt.Errorf("fencing: %w", err)
	}
	answer, err := s.Client.Txn(ctx).Then(clientv3.OpGet(w.Path), clientv3.OpGet(w.mark()),
		clientv3.OpPut(w.fenceKey(), "", clientv3.WithLease(lease.ID))).Commit()
	if err != nil {
		return present{}, fmt.Errorf("fencing: %w", err)
	}
	return stateIn(answer), nil
}

// readState reads the current state.
func (s *Swapper) readState(ctx context.Context, w Swap) (present, error) {
	answer, err := s.Client.Txn(ctx).Then(clientv3.OpGet(w.Path), clientv3.OpGet(w.mark())).Commit()
	if err != nil {
		return present{}, fmt.Errorf("reading: %w", err)
	}
	return stateIn(answer), nil
}

func stateIn(answer *clientv3.TxnResponse) present {
	return present{answer.Header.Revision,
		first(answer.Responses[0].GetResponseRange().Kvs), first(answer.Responses[1].GetResponseRange().Kvs)}
}

func (s *Swapper) try(ctx context.Context, w Swap, read func(context.Context, Swap) (present, error)) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	now, err := read(ctx, w)
	if err != nil {
		return Outcome{}, err
	}
	var applied int64
	switch {
	case now.mark != nil && s.marked(w, now.mark.Value):
		applied = now.mark.ModRevision
	case w.Revision != 0 && w.replaces(now.value):
	case w.Attempt.Since > now.revision:
		return Outcome{}, errRewound
	default:
		if applied, err = s.find(ctx, w, now.revision); err != nil {
			return Outcome{}, fmt.Errorf("reading the history: %w", err)
		}
	}
	if applied == 0 {
		return Outcome{Value: now.value, Dead: true}, nil
	}
	o := Outcome{Done: true, Revision: applied}
	if w.deletes() {
		before, err := s.Client.Get(ctx, w.Path, clientv3.WithRev(applied-1))
		if err != nil {
			return Outcome{}, fmt.Errorf("reading the deleted object: %w", err)
		}
		o.Value = first(before.Kvs)
	}
	return o, nil
}

// find returns the revision in (Attempt.Since, through] at which the write was applied; 0
// if it was not applied.
func (s *Swapper) find(ctx context.Context, w Swap, through int64) (int64, error) {
	if w.Attempt.Since >= through {
		return 0, nil
	}
	ctx, cancel := context.WithCancel(etcd.OwnStream(clientv3.WithRequireLeader(ctx)))
	defer cancel()
	events := s.Client.Watch(ctx, w.mark(), clientv3.WithRev(w.Attempt.Since+1), clientv3.WithCreatedNotify())
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	created := false
	for {
		select {
		case <-progress.C:
			if !created {
				continue
			}
			if err := s.Client.RequestProgress(ctx); err != nil {
				return 0, err
			}
		case response, ok := <-events:
			if !ok {
				return 0, fmt.Errorf("the watch has ended: %w", context.Cause(ctx))
			}
			if err := response.Err(); err != nil {
				return 0, err
			}
			created = created || response.Created
			for _, event := range response.Events {
				switch {
				case event.Kv.ModRevision > through:
					return 0, nil
				case event.IsCreate() || event.IsModify():
					if s.marked(w, event.Kv.Value) {
						return event.Kv.ModRevision, nil
					}
				}
			}
			if response.IsProgressNotify() && response.Header.Revision >= through {
				return 0, nil
			}
		}
	}
}
