package audit

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portico-platform/portico/services/webhook"
)

// receiver is a webhook that fails at first.
type receiver struct {
	mu       sync.Mutex
	failures int
	tries    int
	ids      []string
	kinds    []string
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries++; s.tries <= s.failures {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var list struct {
		Kind, APIVersion string
		Items            []struct{ AuditID string }
	}
	if json.NewDecoder(r.Body).Decode(&list) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.kinds = append(s.kinds, list.Kind+" "+list.APIVersion)
	for _, e := range list.Items {
		s.ids = append(s.ids, e.AuditID)
	}
}

// send logs two events and returns the queue after it was stopped, or gave up.
func (s *receiver) send(t *testing.T, pause time.Duration, given func(*queue) bool) *queue {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	r := &remote{apiVersion: "audit/v1", pause: pause, log: slog.New(slog.DiscardHandler),
		client: webhook.NewClients(webhook.Settings{}).New(webhook.Config{URL: &server.URL, CABundle: ca})}
	q := newQueue(dropped(), r.deliver)
	l := &Log{apiVersion: "audit/v1", outputs: []output{{take: q.add}}}
	for _, id := range []string{"one", "two"} {
		l.Write(Outcome{Stage: ResponseComplete, Record: &Record{ID: id}, Request: httptest.NewRequest("GET", "/api", nil), Status: 200})
	}
	go func() { _ = q.run(t.Context()) }()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return given(q), nil }); err != nil {
		t.Fatal(err)
	}
	q.close(t.Context())
	return q
}

func (s *receiver) got(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.ids, want) {
		t.Errorf("got %v, want %v", s.ids, want)
	}
}

// TestWebhook: events arrive in one list, also after failures; an answer without a body is
// enough.
func TestWebhook(t *testing.T) {
	for _, failures := range []int{0, maxTries - 1} {
		s := &receiver{failures: failures}
		q := s.send(t, time.Millisecond, func(q *queue) bool { return q.bytes.Load() == 0 })
		s.got(t, "one", "two")
		if !slices.Equal(s.kinds, []string{"EventList audit/v1"}) || testutil.ToFloat64(q.dropped) != 0 {
			t.Errorf("got %v, %v dropped", s.kinds, testutil.ToFloat64(q.dropped))
		}
	}
}

// TestWebhookGivesUp: the tries of a batch are bounded, and its events are counted.
func TestWebhookGivesUp(t *testing.T) {
	s := &receiver{failures: 100}
	q := s.send(t, time.Millisecond, func(q *queue) bool { return q.bytes.Load() == 0 })
	if s.got(t); s.tries != maxTries || testutil.ToFloat64(q.dropped) != 2 {
		t.Errorf("%d tries, %v dropped", s.tries, testutil.ToFloat64(q.dropped))
	}
}

// TestWebhookStops: a stop does not wait for the pause before a retry.
func TestWebhookStops(t *testing.T) {
	s := &receiver{failures: 100}
	q := s.send(t, time.Hour, func(*queue) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tries == 1
	})
	if n := testutil.ToFloat64(q.dropped); n != 2 {
		t.Errorf("%v dropped", n)
	}
}
