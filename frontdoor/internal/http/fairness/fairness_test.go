package fairness

import (
	"context"
	"errors"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	flowcontrol "k8s.io/api/flowcontrol/v1"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// of returns a request of a user.
func of(user string, groups ...string) *Request {
	return &Request{Attributes: services.Attributes{User: services.UserInfo{Name: user, Groups: groups}, Verb: "get", Version: "v1",
		Resource: "pods", Namespace: "shop"}}
}

// allUsers returns a flow of all requests, one flow per user.
func allUsers(level string) Flow {
	rules := mandatoryFlows()[1].Rules
	return Flow{Name: "all-users", UID: "flow-uid", Level: level, Precedence: 500, By: flowcontrol.FlowDistinguisherMethodByUserType, Rules: rules}
}

// queued returns shares whose one level has all seats but some of catch-all.
func queued(seats int, wait time.Duration) *Shares {
	s := New(Config{Seats: seats, Wait: wait})
	s.Set([]Level{{Name: "busy", UID: "level-uid", Shares: 1_000_000, Borrowing: -1, Queues: 64, Hand: 6, Length: 50}}, []Flow{allUsers("busy")})
	return s
}

func take(t *testing.T, s *Shares, r *Request) *Seat {
	t.Helper()
	seat := &Seat{}
	if err := s.Acquire(t.Context(), s.Classify(r), r, seat); err != nil {
		t.Fatal(err)
	}
	return seat
}

func (s *Shares) state(level string) (inUse, waiting int) {
	s.mu.Lock()
	l := s.levels[level]
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inUse, l.waiting
}

// awaitWaiting waits until so many requests of a level are in its queues.
func (s *Shares) awaitWaiting(t *testing.T, level string, n int) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		if _, waiting := s.state(level); waiting == n {
			return
		} else if time.Now().After(until) {
			t.Fatalf("%d requests wait, want %d", waiting, n)
		}
	}
}

func isTooMany(err error) bool {
	status := &services.Status{}
	return errors.As(err, &status) && status.Code == 429 && status.Details.RetryAfterSeconds == 1
}

// TestQuietClient: 200 workers of one client keep all seats busy. A request of another client is served
// after at most a few of theirs, wherever the hands of the two overlap.
func TestQuietClient(t *testing.T) {
	const seats, workers, rounds = 8, 200, 40
	s := queued(seats, time.Minute)
	var mu sync.Mutex
	served := 0 // requests of the noisy client
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				seat := &Seat{}
				r := of("noisy")
				if s.Acquire(ctx, s.Classify(r), r, seat) != nil {
					continue
				}
				mu.Lock()
				served++
				mu.Unlock()
				<-time.After(time.Millisecond)
				seat.Release()
			}
		})
	}
	s.awaitWaiting(t, "busy", workers-seats*3/4)
	within := 0
	for i := range rounds {
		mu.Lock()
		before := served
		mu.Unlock()
		take(t, s, of("quiet-"+strconv.Itoa(i))).Release()
		mu.Lock()
		if served-before <= seats { // in turn it would be 192
			within++
		}
		mu.Unlock()
	}
	stop()
	all.Wait()
	if within < rounds*8/10 {
		t.Errorf("%d of %d quiet requests were served after at most %d noisy ones", within, rounds, seats)
	}
	if inUse, waiting := s.state("busy"); inUse != 0 || waiting != 0 {
		t.Errorf("left: %d seats in use, %d requests waiting", inUse, waiting)
	}
}

// TestTurns: of two flows in queues of their own, that which has had less is served first.
func TestTurns(t *testing.T) {
	s := queued(1, time.Minute)
	s.Set([]Level{{Name: "busy", Shares: 1_000_000, Queues: 64, Hand: 1, Length: 50}}, []Flow{allUsers("busy")})
	first := take(t, s, of("greedy"))
	modest := "modest"
	for flow := first.flow; flow.level.choose(flow.entropy(modest)) == first.queue; {
		modest += "-"
	}
	order := make(chan string, 4)
	var all sync.WaitGroup
	for i, user := range []string{"greedy", "greedy", modest, modest} {
		all.Go(func() {
			r, seat := of(user), &Seat{}
			if err := s.Acquire(context.Background(), s.Classify(r), r, seat); err != nil {
				t.Error(err)
			}
			order <- user
			seat.Release()
		})
		s.awaitWaiting(t, "busy", i+1)
	}
	<-time.After(10 * time.Millisecond) // the greedy one holds the seat
	first.Release()
	all.Wait()
	if got := <-order; got != modest {
		t.Errorf("%s was served first", got)
	}
}

func TestRefusals(t *testing.T) {
	s := queued(1, time.Millisecond)
	held := take(t, s, of("a"))
	acquire := func(ctx context.Context, r *Request) error { return s.Acquire(ctx, s.Classify(r), r, &Seat{}) }
	if err := acquire(t.Context(), of("b")); !isTooMany(err) {
		t.Errorf("a request that waits for too long gets %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Wait = time.Minute
	if err := acquire(ctx, of("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left gets %v", err)
	}
	s.Set([]Level{{Name: "busy", Shares: 1, Queues: 1, Hand: 1, Length: 2}}, []Flow{allUsers("busy")})
	left := make(chan error, 2)
	waiting, leave := context.WithCancel(t.Context())
	for range 2 {
		go func() { left <- acquire(waiting, of("b")) }()
	}
	s.awaitWaiting(t, "busy", 2)
	if err := acquire(t.Context(), of("b")); !isTooMany(err) {
		t.Errorf("a request for a full queue gets %v", err)
	}
	s.Set([]Level{{Name: "busy", Shares: 1}}, []Flow{allUsers("busy")})
	if err := acquire(t.Context(), of("b")); !isTooMany(err) {
		t.Errorf("a level without queues queues: %v", err)
	}
	if err := acquire(t.Context(), of("root", services.GroupMasters)); err != nil {
		t.Errorf("an administrator gets %v", err)
	}
	leave()
	<-left
	<-left
	held.Release()
	held.Release()
	f := s.Classify(of("b")).flow
	if full, limit, late, gone := f.full.Load(), f.limit.Load(), f.time.Load(), f.gone.Load(); full != 1 || limit != 1 || late != 1 || gone != 3 {
		t.Errorf("counted: %d full, %d limit, %d late, %d gone; want 1, 1, 1, 3", full, limit, late, gone)
	}
	if inUse, n := s.state("busy"); inUse != 0 || n != 0 {
		t.Errorf("left: %d seats, %d waiting", inUse, n)
	}
}

// TestWideRequests: a list of a large collection takes several seats, and one that needs more than there
// are is served alone.
func TestWideRequests(t *testing.T) {
	costs := NewCosts()
	pods := resource.GroupResource{Resource: "pods"}
	costs.Measured(pods, "", 1000, 900_000)
	for limit, want := range map[int64]int64{0: 900_000, 500: 450_000, 5000: 900_000} {
		if got := costs.Estimate(pods, "", limit); got != want {
			t.Errorf("limit %d: %d bytes, want %d", limit, got, want)
		}
	}
	if got := costs.Estimate(pods, "shop", 0); got != 0 {
		t.Errorf("a collection that was not read counts %d bytes", got)
	}
	s := queued(100, time.Millisecond)
	wide := of("a")
	wide.Bytes = costs.Estimate(pods, "", 0)
	seat := take(t, s, wide)
	if inUse, _ := s.state("busy"); inUse != 9 {
		t.Errorf("the list has %d seats, want 9", inUse)
	}
	seat.Release()
	wide.Bytes = 1 << 40
	seat = take(t, s, wide)
	if inUse, _ := s.state("busy"); inUse != mostSeats {
		t.Errorf("the largest list has %d seats, want %d", inUse, mostSeats)
	}
	s.SetReplicas(50) // two seats are left
	seat.Release()
	take(t, s, wide).Release()
	if inUse, _ := s.state("busy"); inUse != 0 {
		t.Errorf("%d seats are left in use", inUse)
	}
}

// TestReplicas: the seats are those of all front doors together.
func TestReplicas(t *testing.T) {
	s := queued(600, time.Millisecond)
	for replicas, want := range map[int]int{1: 600, 3: 200, 1000: 1, 0: 600} {
		s.SetReplicas(replicas)
		if l := s.levels["busy"]; l.limit != want {
			t.Errorf("%d front doors: %d seats, want %d", replicas, l.limit, want)
		}
	}
}

// TestLending: a level without demand lends seats, one with demand borrows them, and gives them back.
func TestLending(t *testing.T) {
	s := New(Config{Seats: 100, Wait: time.Minute})
	s.Set([]Level{
		{Name: "idle", Shares: 95, Lendable: 50, Borrowing: -1, Queues: 8, Hand: 2, Length: 50},
		{Name: "catch-all", Shares: 5, Borrowing: 300, Queues: 8, Hand: 2, Length: 50},
	}, nil)
	busy, idle := s.levels["catch-all"], s.levels["idle"]
	if busy.limit != 5 || idle.limit != 95 {
		t.Fatalf("at first %d and %d seats, want 5 and 95", busy.limit, idle.limit)
	}
	lend := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lend()
	}
	busy.demand.note(80)
	lend()
	if busy.limit != 20 || idle.limit < 48 || idle.limit > 80 {
		t.Errorf("busy has %d seats, want 20, as it may borrow; idle has %d", busy.limit, idle.limit)
	}
	limit := busy.limit
	s.Set([]Level{idle.spec, busy.spec}, []Flow{allUsers("idle")})
	if busy.limit != limit {
		t.Errorf("a change of a FlowSchema takes back what a level has borrowed: %d", busy.limit)
	}
	idle.demand.note(100)
	busy.demand.smooth = 0
	lend()
	if idle.limit < 95 || busy.limit > 5 {
		t.Errorf("idle gets back %d seats of 95, and busy has %d", idle.limit, busy.limit)
	}
}

// TestPart: a flow has three quarters of the seats at most, while its requests wait others are served at once.
// The requests of a FlowSchema without a distinguisher are not limited like that.
func TestPart(t *testing.T) {
	s := queued(8, time.Minute)
	var held []*Seat
	for range 6 {
		held = append(held, take(t, s, of("greedy")))
	}
	done := make(chan *Seat)
	go func() {
		seat, r := &Seat{}, of("greedy")
		_ = s.Acquire(context.Background(), s.Classify(r), r, seat)
		done <- seat
	}()
	s.awaitWaiting(t, "busy", 1)
	for _, user := range []string{"a", "b"} {
		held = append(held, take(t, s, of(user)))
	}
	if inUse, waiting := s.state("busy"); inUse != 8 || waiting != 1 {
		t.Errorf("%d seats in use, %d requests waiting; want 8 and 1", inUse, waiting)
	}
	held[7].Release()
	if inUse, waiting := s.state("busy"); inUse != 7 || waiting != 1 {
		t.Errorf("%d seats in use, %d requests waiting; want 7 and 1", inUse, waiting)
	}
	held[0].Release()
	(<-done).Release()
	for _, seat := range held {
		seat.Release()
	}
	if l := s.levels["busy"]; len(l.held) > 0 || l.inUse != 0 {
		t.Errorf("left: %v", l.held)
	}
	whole := allUsers("busy")
	whole.By = ""
	s.Set([]Level{s.levels["busy"].spec}, []Flow{whole})
	for range 8 {
		defer take(t, s, of("greedy")).Release()
	}
}

// TestStall: a request whose client does not read returns its seats; one user has few such requests.
func TestStall(t *testing.T) {
	s := queued(8, time.Minute)
	seats := []*Seat{take(t, s, of("slow")), take(t, s, of("slow")), take(t, s, of("slow"))}
	for _, i := range []int{0, 0, 1} {
		if !seats[i].Stall() {
			t.Errorf("request %d may not stall", i)
		}
	}
	if seats[2].Stall() {
		t.Error("more than a quarter of the seats stall for one user")
	}
	if inUse, _ := s.state("busy"); inUse != 1 {
		t.Errorf("%d seats are in use, want 1", inUse)
	}
	if c := s.Counts(false); c.Served != 1 || c.Stalled != 2 {
		t.Errorf("counted: %+v", c)
	}
	for _, seat := range seats {
		seat.Release()
	}
	if s.stalled.n != 0 || len(s.stalled.users) != 0 {
		t.Errorf("left: %v", s.stalled.users)
	}
}

// TestReconfigured: requests that wait are served after their level has lost its queues or was
// removed.
func TestReconfigured(t *testing.T) {
	for what, levels := range map[string][]Level{
		"removed": nil, "rejects": {{Name: "busy", Shares: 1}}, "exempt": {{Name: "busy", Exempt: true}}, "fewer queues": {{Name: "busy", Shares: 1, Queues: 1, Hand: 1, Length: 1}},
	} {
		s := queued(1, time.Minute)
		held := take(t, s, of("a"))
		done := make(chan *Seat)
		go func() {
			seat, r := &Seat{}, of("b")
			_ = s.Acquire(context.Background(), s.Classify(r), r, seat)
			done <- seat
		}()
		s.awaitWaiting(t, "busy", 1)
		s.Set(levels, []Flow{allUsers("busy")})
		take(t, s, of("admin", services.GroupMasters)).Release()
		held.Release()
		seat := <-done
		if seat.state != executing {
			t.Errorf("%s: the waiting request was not served", what)
		}
		seat.Release()
		if l := seat.level; l.inUse != 0 || l.waiting != 0 || l.active != 0 || l.executing.n != 0 || len(l.pending) != 0 {
			t.Errorf("%s: left in the level: %+v", what, l)
		}
	}
}

func TestDumps(t *testing.T) {
	s := queued(1, time.Minute)
	held := take(t, s, of("a\nforged,\tfield"))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		r := of("b")
		left <- s.Acquire(ctx, s.Classify(r), r, &Seat{})
	}()
	s.awaitWaiting(t, "busy", 1)
	dump := func(name, query string) []string {
		out := httptest.NewRecorder()
		s.Dumps()[name](out, httptest.NewRequest("GET", "/?"+query, nil))
		return strings.Split(strings.TrimSpace(out.Body.String()), "\n")
	}
	levels := dump("dump_priority_levels", "")
	if len(levels) != 4 || !strings.HasPrefix(levels[0], "PriorityLevelName, ActiveQueues, IsIdle,") ||
		strings.Join(strings.Fields(levels[1]), " ") != "busy, 1, false, false, 1, 1, 1, 0, 0, 0" {
		t.Errorf("levels:\n%s", strings.Join(levels, "\n"))
	}
	if queues := dump("dump_queues", ""); len(queues) < 2 || !strings.HasPrefix(queues[1], "busy,") {
		t.Errorf("queues:\n%s", strings.Join(queues, "\n"))
	}
	requests := dump("dump_requests", "includeRequestDetails=1")
	if len(requests) != 3 || !strings.Contains(requests[1], "b,") || !strings.Contains(requests[1], "pods") || !strings.Contains(requests[2], "a?forged??field") {
		t.Errorf("requests:\n%s", strings.Join(requests, "\n"))
	}
	leave()
	<-left
	held.Release()
}
