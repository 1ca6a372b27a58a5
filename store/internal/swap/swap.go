// Package swap performs compare-and-swap transactions on etcd, each at most once, and
// determines the outcome of a transaction whose response is lost.
//
// Every transaction has the ID of its write. A put record contains the ID. A deletion
// leaves no record, so its transaction also puts the ID into one of a fixed number of keys
// outside of the objects. Every transaction requires that there is no fence for its ID.
//
// When a response is lost, the fence is put first: a transaction that is still in flight
// cannot be applied after that. Then the history up to the fence shows whether the
// transaction was applied before, even if other writers have changed the object since.
package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
)

const (
	slotPrefix  = "/portico/deletions/"
	fencePrefix = "/portico/fences/"
	// maxID is the maximum length of IDs from callers, in bytes.
	maxID = 64
)

// Swap is one write: a put or deletion of a key in etcd, conditional on the revision of
// the current value.
type Swap struct {
	// Attempt identifies the write. Its ID must be set.
	Attempt services.Attempt
	Path    string
	// Revision is the required ModRevision of the current value; 0 if the key must not
	// exist. It is optional in a repeated deletion.
	Revision int64
	// Value is the new value; empty to delete.
	Value string
	// TTL is the time after which etcd deletes the value, unless it is written again; 0 for never.
	TTL time.Duration
	// Further are additional conditions of the transaction.
	Further []clientv3.Cmp
	// unmarked deletes without putting a mark, which takes space.
	unmarked bool
}

// Outcome is the result of a Swap.
type Outcome struct {
	Done     bool
	Revision int64 // of the write, if it was applied
	// Value is the deleted value of a deletion or, if the Swap was not applied, the
	// current value; nil if there is none.
	Value *mvccpb.KeyValue
	// Dead is true if the write was not applied and no write with this ID can be applied
	// later.
	Dead bool
}

// Config configures a Swapper.
type Config struct {
	Client *clientv3.Client
	// Reached returns a revision that etcd has reached. The history after it is read when
	// a response is lost.
	Reached func() int64
	// Time starts timing a request to etcd, for metrics and traces; calling the result
	// ends it.
	Time func(ctx context.Context, operation string) (context.Context, func(error))
	// Bound returns a context that also ends, with an error as its cause, when etcd
	// stops responding, and Away that error while etcd does not respond: then no
	// transaction is begun, and the outcome of one in progress is settled.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	Away  func() error
	// Heard is called when etcd has responded to a transaction.
	Heard func()
	// WriteID returns the ID of the write that stored the value of an object at a path.
	WriteID func(path string, value []byte) string
	// Within is the timeout for determining an outcome; zero selects the default.
	Within time.Duration
}

// Swapper performs Swaps.
type Swapper struct {
	Config
	stopped chan struct{}
}

// New returns a Swapper.
func New(c Config) *Swapper {
	if c.Within == 0 {
		c.Within = settleWithin
	}
	return &Swapper{Config: c, stopped: make(chan struct{})}
}

// Stop cancels the determination of outcomes. It must be called once.
func (s *Swapper) Stop() { close(s.stopped) }

// CheckAttempt returns the attempt, with a new ID if it has none. It returns BadRequest
// (400) if the attempt is invalid.
func CheckAttempt(a services.Attempt) (services.Attempt, error) {
	switch {
	case a.ID == "" && a.Repeated:
		return a, services.BadRequest("a repeated write needs the ID of the first attempt")
	case a.ID == "":
		a.ID = services.NewWriteID()
	case len(a.ID) > maxID || strings.ContainsFunc(a.ID, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/"\<>&`, r) }):
		return a, services.BadRequest("invalid write ID: %.80q", a.ID)
	}
	return a, nil
}

// Do performs a Swap, or determines the outcome of its earlier attempt. It returns the
// error of etcd if etcd rejects the transaction, NotSent if the transaction was not sent,
// and OutcomeUnknown (504) if its outcome cannot be determined in time. Cancelling ctx ends
// the wait for the transaction; its outcome is then determined without ctx.
func (s *Swapper) Do(ctx context.Context, w Swap) (Outcome, error) {
	if w.Attempt.Repeated {
		return s.settle(ctx, w, errors.New("the response to an earlier attempt was lost"), s.fence)
	}
	if err := cmp.Or(s.Away(), ctx.Err()); err != nil {
		return Outcome{}, &NotSent{err}
	}
	w.Attempt.Since = s.Reached()
	o, err := s.once(ctx, w)
	var guarded *etcd.NoSpace
	switch {
	case err == nil, refused(err):
		return o, err
	case errors.As(err, &guarded) && w.deletes():
		return s.unmarked(ctx, w)
	case errors.As(err, &guarded):
		return o, err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return s.withoutSpace(ctx, w, err)
	}
	return s.settle(ctx, w, err, s.fence)
}

// once sends the transaction.
func (s *Swapper) once(ctx context.Context, w Swap) (Outcome, error) {
	ctx, cancel := s.Bound(ctx)
	defer cancel()
	lease, err := s.grant(ctx, w)
	if err != nil {
		return Outcome{}, &NotSent{err}
	}
	sending, ctx := etcd.Track(ctx)
	ctx, done := s.Time(ctx, "txn")
	answer, err := s.txn(ctx, w, lease).Commit()
	done(err)
	switch {
	case err == nil:
		s.Heard()
		s.revoke(w.unused(answer, lease))
		return w.outcome(answer), nil
	case sending.Never():
		return Outcome{}, &NotSent{err}
	}
	return Outcome{}, err
}

// withoutSpace continues a Swap for which etcd reports no space. etcd applies the first
// transaction that exceeds its quota although it returns the error, and rejects all later
// puts, including fences. No fence is needed, since etcd has responded to this transaction.
// A deletion that was not applied is sent again without a mark, because deletions must
// always be possible.
func (s *Swapper) withoutSpace(ctx context.Context, w Swap, full error) (Outcome, error) {
	o, err := s.settle(ctx, w, full, s.readState)
	switch {
	case err != nil || o.Done:
		return o, err
	case !w.deletes():
		return Outcome{}, full
	}
	return s.unmarked(ctx, w)
}

// unmarked performs a deletion without a mark. Its outcome cannot be determined if the
// response is lost.
func (s *Swapper) unmarked(ctx context.Context, w Swap) (Outcome, error) {
	w.unmarked = true
	o, err := s.once(ctx, w)
	var guarded *etcd.NoSpace
	if err != nil && !refused(err) && !errors.As(err, &guarded) {
		return Outcome{}, services.OutcomeUnknown("%v", err)
	}
	return o, err
}

// NotSent is the error of a transaction that was not sent to etcd.
type NotSent struct{ Err error }

// Error returns the message.
func (e *NotSent) Error() string { return fmt.Sprintf("not sent: %v", e.Err) }

// Unwrap returns the reason.
func (e *NotSent) Unwrap() error { return e.Err }

func (s *Swapper) txn(ctx context.Context, w Swap, lease clientv3.LeaseID) clientv3.Txn {
	txn := s.Client.Txn(ctx).If(append(slices.Clone(w.Further),
		clientv3.Compare(clientv3.ModRevision(w.Path), "=", w.Revision),
		clientv3.Compare(clientv3.CreateRevision(w.fenceKey()), "=", 0),
	)...)
	switch {
	case lease != 0:
		txn = txn.Then(clientv3.OpPut(w.Path, w.Value, clientv3.WithLease(lease), clientv3.WithPrevKV()))
	case !w.deletes():
		txn = txn.Then(clientv3.OpPut(w.Path, w.Value))
	case w.unmarked:
		txn = txn.Then(clientv3.OpDelete(w.Path, clientv3.WithPrevKV()))
	default:
		txn = txn.Then(clientv3.OpDelete(w.Path, clientv3.WithPrevKV()), clientv3.OpPut(w.mark(), w.Attempt.ID))
	}
	return txn.Else(clientv3.OpGet(w.Path))
}

// outcome reads the response to the transaction.
func (w Swap) outcome(answer *clientv3.TxnResponse) Outcome {
	if !answer.Succeeded {
		o := Outcome{Value: first(answer.Responses[0].GetResponseRange().Kvs)}
		o.Dead = w.replaces(o.Value) // then the fence was the reason
		return o
	}
	o := Outcome{Done: true, Revision: answer.Header.Revision}
	if w.deletes() {
		o.Value = first(answer.Responses[0].GetResponseDeleteRange().PrevKvs)
	}
	return o
}

// replaces reports whether a value, nil if there is none, is the one that the Swap replaces.
func (w Swap) replaces(value *mvccpb.KeyValue) bool {
	if value == nil {
		return w.Revision == 0
	}
	return value.ModRevision == w.Revision
}

func (w Swap) deletes() bool { return w.Value == "" }

// mark returns the key whose value contains the ID of the write.
func (w Swap) mark() string {
	if !w.deletes() {
		return w.Path
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(w.Attempt.ID))
	return fmt.Sprintf("%s%02x", slotPrefix, byte(hash.Sum32()))
}

// marked reports whether a value of the mark's key has the ID of the write.
func (s *Swapper) marked(w Swap, value []byte) bool {
	if w.deletes() {
		return string(value) == w.Attempt.ID
	}
	return s.WriteID(w.Path, value) == w.Attempt.ID
}

func (w Swap) fenceKey() string { return fencePrefix + w.Attempt.ID }

func first(values []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}
