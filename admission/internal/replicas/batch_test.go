package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
)

// far is a delay that no test reaches.
const far = 60_000

// server answers calls of a batcher: requests alone when the test says so, batches by
// a function.
type server struct {
	*batcher
	held chan struct{} // closed to answer the request "first"

	mu      sync.Mutex
	alone   []string
	batches [][]string
	answer  func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error)
}

// newServer returns a batcher whose first request is under way.
func newServer(t *testing.T, limits admissionservice.Batch) *server {
	t.Helper()
	s := &server{held: make(chan struct{}), answer: refuseAll}
	started := make(chan struct{})
	s.batcher = &batcher{name: "s", limits: limits, sent: func(int) {},
		single: func(_ context.Context, r services.AdmissionRequest) (Answer, error) {
			s.mu.Lock()
			s.alone = append(s.alone, r.Name)
			s.mu.Unlock()
			if r.Name == "first" {
				close(started)
				<-s.held
			}
			return Answer{Refusal: services.Forbidden("", "", r.Name, "alone")}, nil
		},
		call: func(ctx context.Context, requests []services.AdmissionRequest) ([]services.AdmissionResult, error) {
			var names []string
			for _, r := range requests {
				names = append(names, r.Name)
			}
			s.mu.Lock()
			s.batches = append(s.batches, names)
			s.mu.Unlock()
			return s.answer(ctx, requests)
		}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.ask(context.Background(), services.AdmissionRequest{Name: "first"})
	}()
	<-started
	t.Cleanup(func() { s.release(); <-ended })
	return s
}

func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.held:
	default:
		close(s.held)
	}
}

// refuseAll refuses each request by its name, in reverse order.
func refuseAll(_ context.Context, requests []services.AdmissionRequest) (results []services.AdmissionResult, err error) {
	for _, r := range slices.Backward(requests) {
		results = append(results, services.AdmissionResult{UID: r.UID, Err: services.Forbidden("", "", r.Name, "in a batch")})
	}
	return results, nil
}

// result is what became of a request.
type result struct {
	answer Answer
	err    error
}

// start asks about requests, one after the other, and returns what to wait for.
func (s *server) start(t *testing.T, requests ...services.AdmissionRequest) (wait func() []result) {
	t.Helper()
	results := make([]result, len(requests))
	var all sync.WaitGroup
	before := s.count()
	for i, r := range requests {
		all.Go(func() { results[i].answer, results[i].err = s.ask(t.Context(), r) })
		s.await(before + i + 1)
	}
	return func() []result { all.Wait(); return results }
}

// count is how many requests have reached the batcher or left it.
func (s *server) count() (n int) {
	s.mu.Lock()
	n = len(s.alone)
	for _, b := range s.batches {
		n += len(b)
	}
	s.mu.Unlock()
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	return n + len(s.waiting)
}

// await waits until that many requests wait or have been sent. One that is about to be sent is
// not counted for a moment.
func (s *server) await(requests int) {
	again := time.NewTicker(100 * time.Microsecond)
	defer again.Stop()
	for s.count() < requests {
		<-again.C
	}
}

func requests(names ...string) (all []services.AdmissionRequest) {
	for _, name := range names {
		all = append(all, services.AdmissionRequest{Name: name, UID: "same"})
	}
	return all
}

func (s *server) want(t *testing.T, alone, batches string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := fmt.Sprint(s.alone); got != alone {
		t.Errorf("alone: %s, want %s", got, alone)
	}
	if got := fmt.Sprint(s.batches); got != batches {
		t.Errorf("batches: %s, want %s", got, batches)
	}
}

// TestBatch: requests that come while a call is under way are sent together at its end, and
// each gets its own answer, also if their uids are the same.
func TestBatch(t *testing.T) {
	s := newServer(t, admissionservice.Batch{MaxRequests: 16, MaxDelayMilliseconds: far})
	names := []string{"a", "b", "c", "d"}
	wait := s.start(t, requests(names...)...)
	s.release()
	for i, r := range wait() {
		if r.err != nil || r.answer.Refusal == nil || !strings.Contains(r.answer.Refusal.Message, fmt.Sprintf("%q is forbidden: in a batch", names[i])) {
			t.Errorf("%s: %+v", names[i], r)
		}
	}
	s.want(t, "[first]", "[[a b c d]]")
	if _, err := s.ask(t.Context(), requests("later")[0]); err != nil {
		t.Error(err)
	}
	s.want(t, "[first later]", "[[a b c d]]")
}

// TestBatchLimits: a batch is sent when it has as many requests or bytes as it may, or when
// a request has waited long enough; a request that is too large goes alone.
func TestBatchLimits(t *testing.T) {
	s := newServer(t, admissionservice.Batch{MaxRequests: 2, MaxDelayMilliseconds: far})
	s.start(t, requests("a", "b", "c", "d")...)()
	s.want(t, "[first]", "[[a b] [c d]]")

	s = newServer(t, admissionservice.Batch{MaxRequests: 16, MaxDelayMilliseconds: 1})
	s.start(t, requests("a")...)()
	s.want(t, "[first a]", "[]")

	s = newServer(t, admissionservice.Batch{MaxRequests: 16, MaxDelayMilliseconds: far})
	large := requests("a", "b", "c", "d")
	for i, size := range []int{maxBatchBytes / 2, maxBatchBytes / 2, maxBatchBytes / 2, maxBatchBytes + 1} {
		large[i].Object = make([]byte, size)
	}
	wait := s.start(t, large...)
	s.release()
	wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := fmt.Sprint(s.batches); got != "[[a b]]" || !slices.Contains(s.alone, "c") || !slices.Contains(s.alone, "d") {
		t.Errorf("batches %s, alone %v", got, s.alone)
	}
}

// TestBatchesThatFail: a batch that was not answered fails each request, and counts once; one
// that the service could not review is repeated, each request alone; a request without an
// answer fails alone.
func TestBatchesThatFail(t *testing.T) {
	for name, x := range map[string]struct {
		answer func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error)
		want   func(results []result) bool
		alone  string
	}{
		"no answer": {func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error) {
			return nil, services.Unavailable("gone")
		}, func(r []result) bool {
			counted := 0
			for _, x := range r {
				if services.AsStatus(x.err).Code != 503 {
					return false
				}
				if !again(x.err) {
					counted++
				}
			}
			return counted == 1
		}, "[first]"},
		"too large": {func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error) {
			return nil, errors.New("the answer is too large")
		}, func(r []result) bool { return r[0].answer.Refusal != nil && r[1].answer.Refusal != nil }, "[first a b]"},
		"no batches": {func(context.Context, []services.AdmissionRequest) ([]services.AdmissionResult, error) {
			return nil, services.ErrNoBatch
		}, func(r []result) bool { return r[0].answer.Refusal != nil && r[1].answer.Refusal != nil }, "[first a b]"},
		"a missing result": {func(ctx context.Context, all []services.AdmissionRequest) ([]services.AdmissionResult, error) {
			results, err := refuseAll(ctx, all[1:])
			return append(results, results[0], services.AdmissionResult{UID: "another"}), err
		}, func(r []result) bool {
			return r[0].err != nil && strings.Contains(r[0].err.Error(), "lacks this request") && r[1].err == nil
		}, "[first]"},
		"a bad object": {func(_ context.Context, all []services.AdmissionRequest) (results []services.AdmissionResult, err error) {
			for _, r := range all {
				results = append(results, services.AdmissionResult{UID: r.UID})
			}
			results[0].Response.Object = []byte("{}")
			return results, nil
		}, func(r []result) bool { return r[0].err != nil && r[1].err == nil && r[1].answer.Refusal == nil }, "[first]"},
	} {
		s := newServer(t, admissionservice.Batch{MaxRequests: 2, MaxDelayMilliseconds: far})
		s.answer = x.answer
		results := s.start(t, requests("a", "b")...)()
		if !x.want(results) {
			t.Errorf("%s: %+v", name, results)
		}
		s.mu.Lock()
		slices.Sort(s.alone[1:])
		s.mu.Unlock()
		s.want(t, x.alone, "[[a b]]")
		if name == "no batches" {
			s.start(t, requests("c", "d")...)()
			s.mu.Lock()
			slices.Sort(s.alone[3:])
			s.mu.Unlock()
			s.want(t, "[first a b c d]", "[[a b]]")
		}
	}
}

// TestBatchMembersThatLeave: a caller that does not wait any more leaves the others alone,
// and a call that nobody waits for ends.
func TestBatchMembersThatLeave(t *testing.T) {
	s := newServer(t, admissionservice.Batch{MaxRequests: 2, MaxDelayMilliseconds: far})
	reached, ended := make(chan struct{}), make(chan struct{})
	s.answer = func(ctx context.Context, _ []services.AdmissionRequest) ([]services.AdmissionResult, error) {
		close(reached)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	early, leave := context.WithTimeout(ctx, time.Hour)
	left := make(chan error, 3)
	ask := func(ctx context.Context, name string) {
		before := s.count()
		go func() {
			_, err := s.ask(ctx, services.AdmissionRequest{Name: name})
			left <- err
		}()
		s.await(before + 1)
	}
	ask(early, "waits")
	leave()
	if err := <-left; !services.IsReason(err, services.ReasonTimeout) || s.count() != 1 {
		t.Fatalf("while it waited: %v", err)
	}
	other, leaveToo := context.WithCancel(ctx)
	ask(other, "a")
	ask(ctx, "b")
	<-reached
	leaveToo()
	<-left
	select {
	case <-ended:
		t.Fatal("the call has ended although somebody waits for it")
	default:
	}
	cancel()
	<-left
	<-ended
	s.want(t, "[first]", "[[a b]]")
}
