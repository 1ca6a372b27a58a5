package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
)

const (
	// maxBatchBytes bounds the objects of one batch. A larger request has a separate call.
	maxBatchBytes = 2 << 20
	// noBatchesFor is how long a replica that accepts no batches is sent none.
	noBatchesFor = time.Minute
)

// batcher sends the requests of a busy moment to one replica in one call. A request that
// finds no call in flight is sent at once and alone; those that follow meanwhile wait for
// the end of a call, until they are as many or as large as a batch may be, or for the
// longest delay, whatever comes first.
type batcher struct {
	single func(context.Context, services.AdmissionRequest) (Answer, error)
	call   func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error)
	name   string // of the service
	limits admissionservice.Batch
	// sent is called with the number of requests of each batch.
	sent func(requests int)

	mu      sync.Mutex
	flying  int // calls
	waiting []*member
	bytes   int
	timer   *time.Timer // set while requests wait
	without time.Time   // until then the replica is sent no batches
}

// member is a request that waits for a batch or is part of one.
type member struct {
	ctx     context.Context
	request services.AdmissionRequest
	bytes   int
	done    chan struct{} // closed when answer and err are set, or alone is
	answer  Answer
	err     error
	alone   bool // the request is to be sent again, alone
	left    func()
}

// shared is the error of a call for several requests, which says something about the replica
// once and not once for each.
type shared struct {
	error
	counted *atomic.Bool
}

func (s shared) Unwrap() error { return s.error }

// again reports whether an error is shared and was counted before.
func again(err error) bool {
	var s shared
	return errors.As(err, &s) && !s.counted.CompareAndSwap(false, true)
}

// ask asks about a request, in a batch or alone.
func (b *batcher) ask(ctx context.Context, r services.AdmissionRequest) (Answer, error) {
	m := &member{ctx: ctx, request: r, bytes: len(r.Object) + len(r.OldObject) + len(r.Options), done: make(chan struct{})}
	b.mu.Lock()
	if b.flying == 0 || m.bytes > maxBatchBytes || time.Now().Before(b.without) {
		b.flying++
		b.mu.Unlock()
		defer b.landed()
		return b.single(ctx, r)
	}
	b.join(m)
	b.mu.Unlock()
	select {
	case <-m.done:
	case <-ctx.Done():
		if !b.leave(m) {
			return Answer{}, services.Timeout("it has not responded in time")
		}
		<-m.done
	}
	if m.alone {
		return b.single(ctx, r)
	}
	return m.answer, m.err
}

// join adds a request to those that wait. The caller holds the lock.
func (b *batcher) join(m *member) {
	if b.bytes+m.bytes > maxBatchBytes {
		b.flush()
	}
	b.waiting, b.bytes = append(b.waiting, m), b.bytes+m.bytes
	switch {
	case len(b.waiting) >= int(b.limits.MaxRequests):
		b.flush()
	case len(b.waiting) == 1:
		var timer *time.Timer
		timer = time.AfterFunc(time.Duration(b.limits.MaxDelayMilliseconds)*time.Millisecond, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.timer == timer {
				b.flush()
			}
		})
		b.timer = timer
	}
}

// landed is called at the end of a call: those that waited for it are sent.
func (b *batcher) landed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	b.flush()
}

// flush sends what waits. The caller holds the lock.
func (b *batcher) flush() {
	if len(b.waiting) == 0 {
		return
	}
	members := b.waiting
	b.timer.Stop()
	b.waiting, b.bytes, b.timer = nil, 0, nil
	b.flying++
	ctx, cancel := together(members)
	go func() {
		defer b.landed()
		defer cancel()
		b.send(ctx, members)
	}()
}

// together returns the context of a call for several requests: it ends with the last of
// them, so that none ends the call of the others.
func together(members []*member) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(members[0].ctx))
	var latest time.Time
	bounded := true
	var remaining atomic.Int64
	remaining.Store(int64(len(members)))
	for _, m := range members {
		deadline, ok := m.ctx.Deadline()
		if bounded = bounded && ok; deadline.After(latest) {
			latest = deadline
		}
		m.left = func() {
			if remaining.Add(-1) == 0 {
				cancel()
			}
		}
	}
	if !bounded {
		return ctx, cancel
	}
	ctx, stop := context.WithDeadline(ctx, latest)
	return ctx, func() { stop(); cancel() }
}

// leave drops a request whose caller no longer waits. It reports whether the request has been answered in the
// meantime.
func (b *batcher) leave(m *member) (answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.waiting {
		if w == m {
			b.waiting, b.bytes = append(b.waiting[:i], b.waiting[i+1:]...), b.bytes-m.bytes
			if len(b.waiting) == 0 {
				b.timer.Stop()
				b.timer = nil
			}
			return false
		}
	}
	select {
	case <-m.done:
		return true
	default:
		m.left()
		return false
	}
}

// send asks about the requests of a batch, each of which gets its own answer.
func (b *batcher) send(ctx context.Context, members []*member) {
	if len(members) == 1 {
		m := members[0]
		m.answer, m.err = b.single(m.ctx, m.request)
		close(m.done)
		return
	}
	requests := make([]services.AdmissionRequest, len(members))
	byUID := make(map[string]*member, len(members))
	for i, m := range members {
		requests[i] = m.request
		requests[i].UID = unused(byUID, m.request.UID)
		byUID[requests[i].UID] = m
	}
	b.sent(len(members))
	results, err := b.call(ctx, requests)
	if err != nil {
		b.failed(members, err)
		return
	}
	for _, result := range results {
		m := byUID[result.UID]
		if m == nil {
			continue // the answer to a question that was not asked, or a second one
		}
		delete(byUID, result.UID)
		m.answer, m.err = answerOf(b.name, m.request, result)
		close(m.done)
	}
	for _, m := range byUID {
		m.err = errors.New("its answer to a batch lacks this request")
		close(m.done)
	}
}

// failed ends the requests of a batch without an answer. Those that were not reviewed, by a
// replica that can be reached, are sent alone: the reason may be one of the others.
func (b *batcher) failed(members []*member, err error) {
	code := services.AsStatus(err).Code
	alone := errors.Is(err, services.ErrNoBatch) || code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout
	if errors.Is(err, services.ErrNoBatch) {
		b.mu.Lock()
		b.without = time.Now().Add(noBatchesFor)
		b.mu.Unlock()
	}
	err = shared{err, &atomic.Bool{}}
	for _, m := range members {
		m.err, m.alone = err, alone
		close(m.done)
	}
}

// unused returns the uid of a request, or a variant of it that no other request has.
func unused(taken map[string]*member, uid string) string {
	for n, candidate := 1, uid; ; n++ {
		if candidate != "" && taken[candidate] == nil {
			return candidate
		}
		candidate = fmt.Sprintf("%s#%d", uid, n)
	}
}
