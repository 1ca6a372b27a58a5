package events

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// written is the creation of an event.
func written(namespace, user, object string) services.AdmissionRequest {
	return services.AdmissionRequest{Operation: services.OperationCreate, Version: "v1", Resource: "events", Kind: "Event", Namespace: namespace,
		Name: "e", User: services.UserInfo{Name: user}, Object: []byte(object)}
}

// at returns a plugin whose clock the test moves.
func at(limits ...Limit) (*Plugin, *time.Time) {
	p, now := New(limits, vocabulary.Platform()), time.Unix(1e9, 0)
	p.now = func() time.Time { return now }
	return p, &now
}

func TestLimits(t *testing.T) {
	about := func(name string) string {
		return `{"source":{"component":"c"},"involvedObject":{"kind":"Pod","name":"` + name + `"}}`
	}
	newer := written("a", "u", `{"reportingController":"c","regarding":{"kind":"Pod","name":"x"}}`)
	newer.Group = "events.platform.io"
	update := written("a", "u", about("x"))
	update.Operation = services.OperationUpdate
	for name, x := range map[string]struct {
		limit    string
		requests []services.AdmissionRequest
		refused  string // of the last request; empty: it is admitted
	}{
		"all":                          {Server, []services.AdmissionRequest{written("a", "u", "{}"), written("b", "v", "{}")}, "limit reached on type Server for key "},
		"an update":                    {Server, []services.AdmissionRequest{written("a", "u", "{}"), update}, "limit reached on type Server for key "},
		"the newer group":              {Server, []services.AdmissionRequest{written("a", "u", "{}"), newer}, "limit reached on type Server for key "},
		"a namespace":                  {Namespace, []services.AdmissionRequest{written("a", "u", "{}"), written("a", "v", "{}")}, "limit reached on type Namespace for key a"},
		"another namespace":            {Namespace, []services.AdmissionRequest{written("a", "u", "{}"), written("b", "u", "{}")}, ""},
		"a user":                       {User, []services.AdmissionRequest{written("a", "u", "{}"), written("b", "u", "{}")}, "limit reached on type User for key u"},
		"another user":                 {User, []services.AdmissionRequest{written("a", "u", "{}"), written("a", "v", "{}")}, ""},
		"an object":                    {SourceAndObject, []services.AdmissionRequest{written("a", "u", about("x")), written("b", "v", about("x"))}, "limit reached on type SourceAndObject for key cPodx"},
		"an object in the newer group": {SourceAndObject, []services.AdmissionRequest{newer, newer}, "limit reached on type SourceAndObject for key cPodx"},
		"another object":               {SourceAndObject, []services.AdmissionRequest{written("a", "u", about("x")), written("a", "u", about("y"))}, ""},
		"parts that join to the same": {SourceAndObject, []services.AdmissionRequest{written("a", "u", `{"source":{"component":"ab","host":"c"}}`),
			written("a", "u", `{"source":{"component":"a","host":"bc"}}`)}, ""},
	} {
		p, _ := at(Limit{Type: x.limit, QPS: 1, Burst: 1})
		var err error
		for _, r := range x.requests {
			err = p.Validate(t.Context(), review.New(r))
		}
		s := services.AsStatus(err)
		switch {
		case x.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.refused != "" && (s == nil || s.Code != http.StatusTooManyRequests || s.Reason != services.ReasonTooManyRequests || s.Message != "Too many requests: "+x.refused):
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestRate lets a burst through, and then so many a second.
func TestRate(t *testing.T) {
	p, now := at(Limit{Type: Server, QPS: 2, Burst: 3})
	through := func() (n int) {
		for range 10 {
			if p.Validate(t.Context(), review.New(written("a", "u", "{}"))) == nil {
				n++
			}
		}
		return n
	}
	for i, want := range []int{3, 2, 3} {
		if got := through(); got != want {
			t.Errorf("%d events came through the %d. time, want %d", got, i, want)
		}
		*now = now.Add(time.Duration(1+i*9) * time.Second)
	}
}

// TestEveryLimitCounts: an event that one limit refuses takes from the others, and the
// answer names all limits that have been reached.
func TestEveryLimitCounts(t *testing.T) {
	p, _ := at(Limit{Type: Server, QPS: 1, Burst: 1}, Limit{Type: Namespace, QPS: 1, Burst: 2})
	var err error
	for range 3 {
		err = p.Validate(t.Context(), review.New(written("a", "u", "{}")))
	}
	if want := "Too many requests: [limit reached on type Server for key , limit reached on type Namespace for key a]"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestOthersPass(t *testing.T) {
	p, _ := at(Limit{Type: Server, QPS: 1, Burst: 1})
	for name, change := range map[string]func(*services.AdmissionRequest){
		"a dry run":       func(r *services.AdmissionRequest) { r.DryRun = true },
		"another type":    func(r *services.AdmissionRequest) { r.Resource = "configmaps" },
		"a type of users": func(r *services.AdmissionRequest) { r.Group = "example.com" },
		"a deletion":      func(r *services.AdmissionRequest) { r.Operation = services.OperationDelete },
	} {
		for range 3 {
			r := written("a", "u", "{}")
			change(&r)
			if err := p.Validate(t.Context(), review.New(r)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestBucketsAreBounded: a bucket that is dropped for others is full again, and what is
// kept of a key does not grow with it.
func TestBucketsAreBounded(t *testing.T) {
	p, _ := at(Limit{Type: Namespace, QPS: 1, Burst: 1, CacheSize: 2})
	for i := range 1000 {
		if err := p.Validate(t.Context(), review.New(written(fmt.Sprint(i), "u", "{}"))); err != nil {
			t.Fatalf("namespace %d: %v", i, err)
		}
	}
	if kept := p.enforcers[0].buckets.Len(); kept != 2 {
		t.Errorf("%d buckets are kept", kept)
	}
	if err := p.Validate(t.Context(), review.New(written("0", "u", "{}"))); err != nil {
		t.Errorf("a bucket that was dropped: %v", err)
	}
	long := strings.Repeat("n", 1<<20)
	_ = p.Validate(t.Context(), review.New(written(long, "u", "{}")))
	if err := p.Validate(t.Context(), review.New(written(long, "u", "{}"))); err == nil || len(err.Error()) > 2*maxKey {
		t.Errorf("a key of a MiB: %d bytes of message", len(fmt.Sprint(err)))
	}
}

// TestNoBurstByRace: many at once get no more than the burst.
func TestNoBurstByRace(t *testing.T) {
	p, _ := at(Limit{Type: Namespace, QPS: 1, Burst: 5})
	var through atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if p.Validate(t.Context(), review.New(written("a", "u", "{}"))) == nil {
				through.Add(1)
			}
		})
	}
	all.Wait()
	if through.Load() != 5 {
		t.Errorf("%d events came through", through.Load())
	}
}
