package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/contracttest/lossy"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/attack/linear"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	linearClients = 10
	linearKeys    = 5
	// linearFaults is how many faults strike in the short form.
	linearFaults = 8
	// linearPause is what a client waits between two requests: a history that is
	// too dense takes the checker for ever.
	linearPause = 15 * time.Millisecond
	// linearPatience is the timeout of a request, after which its outcome is unknown.
	linearPatience = 3 * time.Second
	checkTime      = 2 * time.Minute
)

// TestLinearizable records what clients do and see on two front doors while processes
// are killed, links are cut and answers are lost: reads and writes have to be
// linearizable, and every watch has to show each version once and in order.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts eleven processes")
	}
	l := newLinearTrial(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients, watchers sync.WaitGroup
	for i := range len(l.doors) * 2 {
		watchers.Go(func() { l.watch(ctx, i) })
	}
	writing, stop := context.WithCancel(ctx)
	for i := range linearClients {
		random := rand.New(rand.NewPCG(l.random.Uint64(), 0))
		clients.Go(func() { l.act(writing, i, random) })
	}
	for i, end := 0, time.Now().Add(*attackTime/4); i < linearFaults || time.Now().Before(end); i++ {
		l.strike(t, i)
	}
	stop()
	clients.Wait()
	l.finish(t)
	cancel()
	watchers.Wait()
	l.check(t)
}

// linearTrial is a suite of two front doors and two stores, with lossy links between
// all processes, and what its clients have recorded.
type linearTrial struct {
	*suite
	random   *rand.Rand
	programs map[string]program
	links    map[[2]string]*lossy.Proxy
	doors    []*cluster.Cluster
	path     string
	from     int64
	history  *linear.History

	mu      sync.Mutex
	watches []linear.Watch
	told    []linear.Event
	lists   []linear.Snapshot
	number  int      // of clients: each unknown result needs a new one
	strange []string // answers that mean nothing to the checker
}

func newLinearTrial(t *testing.T) *linearTrial {
	t.Helper()
	l := &linearTrial{random: seeded(t), suite: newSuite(t, vocabulary.K8s()), programs: map[string]program{},
		links: map[[2]string]*lossy.Proxy{}, history: linear.NewHistory(), number: linearClients}
	for _, p := range replicated() {
		l.programs[p.replica] = p
		if p.replica != p.name {
			l.add(t, p.name, p.replica)
		}
	}
	l.between = func(from, to string) string {
		pair := [2]string{from, to}
		if l.links[pair] == nil {
			l.links[pair] = lossy.New(t, l.addresses[to])
		}
		return l.links[pair].Address()
	}
	for _, p := range replicated() {
		l.start(t, p)
	}
	for _, door := range l.replicas["frontdoor"] {
		l.doors = append(l.doors, l.connect(t, door))
	}
	namespace := newNamespace(t, l.doors[0].Client(t))
	l.path = "/api/v1/namespaces/" + namespace + "/configmaps"
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	l.doors[0].Ask(t, cluster.Request{Path: l.path}).Decode(t, &list)
	l.from = revisionOf(list.Metadata.ResourceVersion)
	l.watches = make([]linear.Watch, 2*len(l.doors))
	for i := range l.watches {
		l.watches[i].From = l.from
	}
	return l
}

func revisionOf(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64)
	return n
}

// register is a config map as the checker sees it: its annotation n is the value.
type register struct {
	Metadata struct {
		Name, ResourceVersion string
		Annotations           map[string]string
	}
}

func (r register) event() linear.Event {
	return linear.Event{Revision: revisionOf(r.Metadata.ResourceVersion), Key: r.Metadata.Name, Value: r.Metadata.Annotations["n"]}
}

func registerJSON(key, value, version string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q,"labels":{"linear":"true"},"annotations":{"n":%q}}}`, key, version, value)
}

// act is one client: it does one thing after the other until it is stopped.
func (l *linearTrial) act(ctx context.Context, client int, random *rand.Rand) {
	known := map[string]register{} // what it has read last: updates start there
	ticks := time.NewTicker(linearPause)
	defer ticks.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		door := l.doors[random.IntN(len(l.doors))]
		if random.IntN(8) == 0 {
			client = l.list(client, door)
		} else {
			kinds := []linear.Kind{linear.Read, linear.Create, linear.Update, linear.Update, linear.Update, linear.Patch, linear.Patch, linear.Delete}
			client = l.one(client, door, known, linear.Operation{
				Kind: kinds[random.IntN(len(kinds))], Key: fmt.Sprintf("k%d", random.IntN(linearKeys)), Value: fmt.Sprintf("c%d-%d", client, n)})
		}
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}

// one performs one operation and records it. It returns the client for the next one: a new
// client after an unknown outcome, since the operation of this one is still pending.
func (l *linearTrial) one(client int, door *cluster.Cluster, known map[string]register, o linear.Operation) int {
	o.Client = client
	path, r := l.path+"/"+o.Key, cluster.Request{}
	if o.Kind == linear.Update { // like clients, reads the object first
		client = l.one(client, door, known, linear.Operation{Kind: linear.Read, Key: o.Key})
		o.Client = client
	}
	switch base := known[o.Key]; o.Kind {
	case linear.Read:
		o.Value, r = "", cluster.Request{Path: path}
	case linear.Create:
		r = cluster.Request{Method: http.MethodPost, Path: l.path, Body: registerJSON(o.Key, o.Value, "")}
	case linear.Update:
		if base.Metadata.ResourceVersion == "" {
			return client
		}
		o.Expected = base.event().Value
		r = cluster.Request{Method: http.MethodPut, Path: path, Body: registerJSON(o.Key, o.Value, base.Metadata.ResourceVersion)}
	case linear.Patch:
		r = cluster.Request{Method: http.MethodPatch, Path: path, Type: "application/merge-patch+json", Body: `{"metadata":{"annotations":{"n":"` + o.Value + `"}}}`}
	case linear.Delete:
		o.Value, r = "", cluster.Request{Method: http.MethodDelete, Path: path}
	}
	ctx, cancel := context.WithTimeout(context.Background(), linearPatience)
	defer cancel()
	o.Call = l.history.Now()
	answer, err := door.Do(ctx, r)
	var refused bool
	if o.Result, refused = l.result(answer, err); refused {
		return client // the error says that nothing was written
	}
	if o.Result == linear.Done && o.Kind != linear.Delete {
		var got register
		_ = json.Unmarshal([]byte(answer.Body), &got)
		known[o.Key] = got
		if o.Kind == linear.Read {
			o.Value = got.event().Value
		}
		l.tell(got.event())
	}
	if o.Kind == linear.Read && o.Result == linear.Missing {
		o.Result = linear.Done // it has read that there is nothing
	}
	l.history.Add(o)
	if o.Result == linear.Unknown {
		return l.another()
	}
	return client
}

func (l *linearTrial) another() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	return l.number
}

func (l *linearTrial) tell(e linear.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, e)
}

// result returns the outcome of a response; refused is true for one that says that nothing
// was done, whatever the object is.
func (l *linearTrial) result(answer cluster.Answer, err error) (result linear.Result, refused bool) {
	var status cluster.Status
	if err == nil && answer.Code >= 400 {
		_ = json.Unmarshal([]byte(answer.Body), &status)
	}
	switch {
	case err != nil || answer.Code >= 500:
		return linear.Unknown, false
	case answer.Code/100 == 2:
		return linear.Done, false
	case answer.Code == http.StatusNotFound:
		return linear.Missing, false
	case status.Reason == "AlreadyExists":
		return linear.Exists, false
	case status.Reason == "Conflict":
		return linear.Conflict, false
	case answer.Code == http.StatusTooManyRequests:
		return linear.Unknown, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strange = append(l.strange, fmt.Sprintf("%d %.200s", answer.Code, answer.Body))
	return linear.Unknown, false
}

// list reads all registers at once: a read of each, and a snapshot of all.
func (l *linearTrial) list(client int, door *cluster.Cluster) int {
	ctx, cancel := context.WithTimeout(context.Background(), linearPatience)
	defer cancel()
	call := l.history.Now()
	answer, err := door.Do(ctx, cluster.Request{Path: l.path + "?labelSelector=linear"})
	if result, _ := l.result(answer, err); result != linear.Done {
		return client
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []register
	}
	_ = json.Unmarshal([]byte(answer.Body), &list)
	s := linear.Snapshot{Revision: revisionOf(list.Metadata.ResourceVersion), Values: map[string]string{}}
	for _, item := range list.Items {
		s.Values[item.Metadata.Name] = item.event().Value
	}
	for key := range linearKeys {
		name := fmt.Sprintf("k%d", key)
		l.history.Add(linear.Operation{Client: client, Kind: linear.Read, Key: name, Value: s.Values[name], Result: linear.Done, Call: call})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = append(l.lists, s)
	return client
}

// watch follows all registers through one front door, resumed where it was cut.
func (l *linearTrial) watch(ctx context.Context, i int) {
	door, retry := l.doors[i%len(l.doors)], time.NewTicker(20*time.Millisecond)
	defer retry.Stop()
	for from := l.from; ctx.Err() == nil; {
		seconds := 2 + i // so that watches are resumed often
		response, err := door.Send(ctx, cluster.Request{Path: fmt.Sprintf("%s?watch=true&labelSelector=linear&timeoutSeconds=%d&resourceVersion=%d", l.path, seconds, from)})
		if err == nil {
			from = l.follow(i, json.NewDecoder(response.Body), from)
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

func (l *linearTrial) follow(i int, events *json.Decoder, from int64) int64 {
	for {
		var e struct {
			Type   string
			Object register
		}
		if events.Decode(&e) != nil {
			return from
		}
		event := e.Object.event()
		l.mu.Lock()
		switch e.Type {
		case "ADDED", "MODIFIED":
			l.watches[i].Events = append(l.watches[i].Events, event)
		case "DELETED":
			event.Value = ""
			l.watches[i].Events = append(l.watches[i].Events, event)
		default:
			l.strange = append(l.strange, fmt.Sprintf("a watch from %d shows %s %+v", from, e.Type, e.Object))
		}
		l.mu.Unlock()
		if event.Revision > 0 {
			from = event.Revision
		}
	}
}

// finish makes a last change and waits until every watcher has seen it.
func (l *linearTrial) finish(t *testing.T) {
	t.Helper()
	for i, door := range l.replicas["frontdoor"] {
		l.processes[door].await(t, l.doors[i])
	}
	var last register
	l.doors[0].Ask(t, cluster.Request{Method: http.MethodPost, Path: l.path, Body: registerJSON("end", "end", "")}).Decode(t, &last)
	l.tell(last.event())
	for i := range l.watches {
		eventually(t, fmt.Sprintf("watcher %d sees the end", i), func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			seen := l.watches[i].Events
			return len(seen) > 0 && seen[len(seen)-1].Key == "end"
		})
		l.watches[i].Through = last.event().Revision
	}
	for key := range linearKeys { // the final state has to fit as well
		l.one(0, l.doors[key%len(l.doors)], map[string]register{}, linear.Operation{Kind: linear.Read, Key: fmt.Sprintf("k%d", key)})
	}
}

// check judges everything that was recorded.
func (l *linearTrial) check(t *testing.T) {
	t.Helper()
	operations, unknown := l.history.Operations(), 0
	for _, o := range operations {
		if o.Result == linear.Unknown {
			unknown++
		}
	}
	t.Logf("%d operations, %d of unknown result; %d events of %d watches; %d lists", len(operations), unknown, len(l.watches[0].Events), len(l.watches), len(l.lists))
	for _, problem := range append(linear.CheckWatches(l.watches, l.told, l.lists), l.strange...) {
		t.Error(problem)
	}
	verdict := linear.Check(operations, checkTime)
	if verdict.Linearizable {
		return
	}
	t.Errorf("the history is not linearizable (undecided: %v)", verdict.Undecided)
	page := filepath.Join(os.TempDir(), fmt.Sprintf("portico-linear-%d.html", os.Getpid()))
	file, err := os.Create(page)
	if err == nil {
		err = verdict.Visualize(file)
		_ = file.Close()
	}
	t.Logf("see %s (%v)", page, err)
}
