package delegate

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// writeEvery is how often the status of one service is written at most, because
	// something has changed; renewEvery is how often otherwise, with new counts.
	writeEvery = 5 * time.Second
	renewEvery = 5 * time.Minute
	// staleAfter is when the view of a process that is gone is removed.
	staleAfter   = 3 * renewEvery
	maxObservers = 32
	writeTimeout = 5 * time.Second
)

// statusWriter writes what this process observes to the status of services. It is the only writer, in each
// process of admission; each has a separate entry in the status.
type statusWriter struct {
	store   services.Store
	config  Config
	name    string // of this process
	written map[string]written
}

// written is what was written last about a service.
type written struct {
	uid   string
	about observation
	at    time.Time
}

// observation is what of a status is worth a write when it changes.
type observation struct {
	generation       int64
	problem, breaker string
	ready            bool
	replicas         []admissionservice.Replica
}

func newStatusWriter(c Config) *statusWriter {
	host, err := os.Hostname()
	if err != nil {
		host = "admission"
	}
	return &statusWriter{store: c.Store, config: c, name: host + "-" + rand.String(5), written: map[string]written{}}
}

// Report writes the status of the services of objects, until ctx ends.
func (g *Registry) Report(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			g.report(ctx)
		}
	}
}

// report writes the status of the services whose state has changed.
func (g *Registry) report(ctx context.Context) {
	g.mu.Lock()
	var objects []*Declared
	for _, d := range g.declared() {
		if d.UID != "" {
			objects = append(objects, d)
		}
	}
	running := g.running
	g.mu.Unlock()
	g.status.prune(objects)
	for _, d := range objects {
		if s := running[d.Name]; d.Problem != "" || s != nil {
			g.status.update(ctx, d, s)
		}
	}
}

func (w *statusWriter) prune(objects []*Declared) {
	for name, last := range w.written {
		if !slices.ContainsFunc(objects, func(d *Declared) bool { return d.UID == last.uid }) {
			delete(w.written, name)
		}
	}
}

// update writes the status of a service if that is due. s is nil for one with a problem.
func (w *statusWriter) update(ctx context.Context, d *Declared, s *Service) {
	o, observer := w.observe(d, s)
	last, known := w.written[d.Name]
	age := time.Since(last.at)
	if known && (age < writeEvery || age < renewEvery && reflect.DeepEqual(o, last.about)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := w.write(ctx, d, func(status *admissionservice.Status) { merge(status, o, observer) })
	switch {
	case services.IsReason(err, services.ReasonNotFound), services.IsConflict(err): // the next tick sees the new state
		return
	case err != nil:
		w.config.Log.Warn("the status of an admission service cannot be written", "service", d.Name, "error", err)
	}
	w.written[d.Name] = written{d.UID, o, time.Now()}
}

// observe returns the state of a service as this process sees it.
func (w *statusWriter) observe(d *Declared, s *Service) (observation, admissionservice.Observer) {
	o := observation{generation: d.Generation, problem: d.Problem}
	observer := admissionservice.Observer{Name: w.name, ObservedAt: metav1.Now()}
	if s == nil {
		return o, observer
	}
	state := s.pool.State()
	observer.Calls, observer.LastError = s.tally.read()
	if observer.LastError == "" {
		observer.LastError = short(state.Problem)
	}
	for i := range state.Replicas {
		state.Replicas[i].LastError = short(state.Replicas[i].LastError)
	}
	observer.Breaker, observer.Replicas = string(state.Breaker), state.Replicas
	o.breaker, o.ready = observer.Breaker, state.Ready
	for _, r := range state.Replicas {
		r.LastError = ""
		o.replicas = append(o.replicas, r)
	}
	return o, observer
}

// merge puts the view of this process into a status, and derives the conditions from all
// views.
func merge(status *admissionservice.Status, o observation, mine admissionservice.Observer) {
	status.ObservedGeneration = o.generation
	accepted := metav1.Condition{Type: admissionservice.Accepted, Status: metav1.ConditionTrue, Reason: "Valid", ObservedGeneration: o.generation}
	if o.problem != "" {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, "Invalid", short(o.problem)
	}
	status.Observers = slices.DeleteFunc(status.Observers, func(other admissionservice.Observer) bool {
		return other.Name == mine.Name || time.Since(other.ObservedAt.Time) > staleAfter
	})
	if o.problem == "" {
		status.Observers = append(status.Observers, mine)
	}
	slices.SortFunc(status.Observers, func(a, b admissionservice.Observer) int { return b.ObservedAt.Compare(a.ObservedAt.Time) })
	status.Observers = status.Observers[:min(len(status.Observers), maxObservers)]
	available := metav1.Condition{Type: admissionservice.Available, Status: metav1.ConditionTrue, Reason: "Reachable", ObservedGeneration: o.generation}
	if len(status.Observers) == 0 {
		available.Status, available.Reason = metav1.ConditionUnknown, "NotAsked"
	}
	for _, by := range status.Observers {
		if !reachable(by) {
			available.Status, available.Reason = metav1.ConditionFalse, "Unreachable"
			available.Message = fmt.Sprintf("%s cannot call it: %s", by.Name, by.LastError)
			break
		}
	}
	meta.SetStatusCondition(&status.Conditions, accepted)
	meta.SetStatusCondition(&status.Conditions, available)
}

// reachable reports whether a process of admission has a replica that it may ask.
func reachable(by admissionservice.Observer) bool {
	return slices.ContainsFunc(by.Replicas, func(r admissionservice.Replica) bool { return r.Ready && r.Breaker != "Open" })
}

// write changes the status of the stored object, unless the object has been replaced. It
// leaves everything else as it is stored, byte for byte in meaning.
func (w *statusWriter) write(ctx context.Context, d *Declared, change func(*admissionservice.Status)) error {
	key := resource.Key{GroupResource: resource.GroupResource{Group: admissionservice.Group, Resource: admissionservice.Resource}, Name: d.Name}
	stored, err := w.store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return err
	}
	if stored.UID != d.UID {
		return services.NotFound(key.Group, key.Resource, key.Name)
	}
	object, err := tree.Decode(stored.JSON)
	if err != nil {
		return err
	}
	var before struct{ Status admissionservice.Status }
	if json.Unmarshal(stored.JSON, &before) != nil { // a status that a client has written
		before.Status = admissionservice.Status{}
	}
	change(&before.Status)
	raw, err := json.Marshal(before.Status)
	if err != nil {
		return err
	}
	if object["status"], err = tree.Decode(raw); err != nil {
		return err
	}
	delete(tree.Object(object, "metadata"), "resourceVersion")
	content := services.Content{UID: stored.UID, Labels: stored.Labels, Fields: stored.Fields}
	if content.JSON, err = tree.Encode(object); err != nil {
		return err
	}
	_, err = w.store.Update(ctx, services.UpdateRequest{Key: key, Revision: stored.Revision, Content: content})
	return err
}
