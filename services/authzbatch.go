package services

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// AuthzBatch is an optional interface of an Authz: several requests in one call. Use AuthorizeAll.
type AuthzBatch interface {
	// AuthorizeBatch is Authorize for each of at most MaxAuthzBatch requests. It returns one result for each,
	// in order; requests that could not be decided in three quarters of the time until the deadline of ctx have
	// an error. An error means that none was decided: BadRequest (400) for more requests, ErrNoBatch if the
	// Authz does not support batches.
	AuthorizeBatch(ctx context.Context, requests []Attributes) ([]AuthzResult, error)
}

// MaxAuthzBatch bounds the requests of a call of AuthorizeBatch.
const MaxAuthzBatch = 256

// AuthzResult is what Authorize returns for one request.
type AuthzResult struct {
	Decision
	Err error
}

const (
	// maxBatchBytes bounds the text of the requests of a batch, unless it is a single one.
	maxBatchBytes = 1 << 20
	// singles is the number of concurrent calls to an Authz without batches.
	singles = 16
)

// AuthorizeAll authorizes each request, in as few calls as the Authz supports. It returns one result for each, in order.
func AuthorizeAll(ctx context.Context, a Authz, requests []Attributes) []AuthzResult {
	batch, ok := a.(AuthzBatch)
	if !ok {
		return authorizeEach(ctx, a, requests)
	}
	results := make([]AuthzResult, 0, len(requests))
	for len(requests) > 0 {
		n := batchLength(requests)
		some, err := batch.AuthorizeBatch(ctx, requests[:n])
		switch {
		case errors.Is(err, ErrNoBatch):
			some = authorizeEach(ctx, a, requests[:n])
		case err != nil:
			some = make([]AuthzResult, n)
			for i := range some {
				some[i].Err = err
			}
		}
		results, requests = append(results, some...), requests[n:]
	}
	return results
}

// batchLength returns how many of the requests, at least one, make up the next batch.
func batchLength(requests []Attributes) (n int) {
	for size := 0; n < min(len(requests), MaxAuthzBatch); n++ {
		if size += requests[n].size(); size > maxBatchBytes {
			return max(n, 1)
		}
	}
	return n
}

// size returns the bytes of text in a request.
func (a *Attributes) size() int {
	n := len(a.Verb) + len(a.Path) + len(a.Group) + len(a.Version) + len(a.Resource) + len(a.Subresource) + len(a.Namespace) + len(a.Name)
	n += len(a.FieldSelector) + len(a.LabelSelector) + len(a.User.Name) + len(a.User.UID)
	for _, group := range a.User.Groups {
		n += len(group)
	}
	for name, values := range a.User.Extra {
		n += len(name)
		for _, value := range values {
			n += len(value)
		}
	}
	return n
}

// authorizeEach calls Authorize for each request, several at a time, in three quarters of the time until the
// deadline of ctx, so that the caller gets completed decisions even if others are slow.
func authorizeEach(ctx context.Context, a Authz, requests []Attributes) []AuthzResult {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*3/4)
		defer cancel()
	}
	results := make([]AuthzResult, len(requests))
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(singles, len(requests)) {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				if results[i].Err = ctx.Err(); results[i].Err == nil {
					results[i].Decision, results[i].Err = a.Authorize(ctx, requests[i])
				}
			}
		})
	}
	done.Wait()
	return results
}
