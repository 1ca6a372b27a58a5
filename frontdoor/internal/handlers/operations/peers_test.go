package operations

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers/peerstest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// suite is what the front doors of a test have in common.
type suite struct {
	peerstest.Suite
	store services.Store
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	return &suite{peerstest.New(t), fake.New(t).Store()}
}

// open opens the port of a front door with that identity and announces it.
func (s *suite) open(identity *peertls.Identity, answer func(*Handlers, peers.Question) peers.Answer) (*Handlers, net.Addr) {
	s.Helper()
	own := watches.New()
	h := &Handlers{own: own}
	h.Peers = &peers.Peers{Config: peers.Config{Identity: identity, Store: s.store, Instance: own.Instance(), Host: "host-of-" + own.Instance(),
		Answer: func(q peers.Question) peers.Answer { return answer(h, q) }, Log: slog.New(slog.DiscardHandler), Timeout: time.Minute}}
	at := s.Serve(h.Peers, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }), http.NotFoundHandler())
	s.announce(h.Peers.Announced(at, "192.0.2.1"))
	return h, at
}

func (s *suite) announce(a records.Announced) {
	s.Helper()
	book := records.Book{Store: s.store}
	if err := book.Renew(s.Context(), records.Record{Announced: a}, time.Now()); err != nil {
		s.Fatal(err)
	}
}

// request sends a request to a front door, as an administrator.
func (s *suite) request(h *Handlers, method, path string, into any) (status error) {
	s.Helper()
	router := chi.NewRouter()
	h.Routes(router, func(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { status = serve(w, r) }
	})
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), method, Root+path, nil))
	if status == nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			s.Fatal(err)
		}
	}
	return status
}

// errors returns why front doors have not answered, by their hosts.
func (l watchList) errors() map[string]string {
	all := map[string]string{}
	for _, d := range l.FrontDoors {
		if d.Error != "" {
			all[d.Host] = d.Error
		}
	}
	return all
}

// TestFrontDoorsAskEachOther: each shows and closes the watches of both, and the port serves
// clients as before.
func TestFrontDoorsAskEachOther(t *testing.T) {
	s := newSuite(t)
	identity := s.Identity(s.Authority, "frontdoor")
	one, address := s.open(identity, (*Handlers).answer)
	two, _ := s.open(identity, (*Handlers).answer)
	_, near := one.own.Open(t.Context(), watches.Watch{User: "near"})
	ctx, far := two.own.Open(t.Context(), watches.Watch{User: "far"})
	near.Sending(1)
	near.Sent(1)
	far.Sending(2)
	far.Sent(2)
	var list watchList
	if err := s.request(one, http.MethodGet, "/watches", &list); err != nil || len(list.errors()) > 0 || list.Total != 2 || len(list.FrontDoors) != 2 ||
		len(list.Items) != 2 || list.Items[0].User != "far" || list.Items[0].FrontDoor != two.own.Instance() || list.FrontDoors[0].Instance != one.own.Instance() {
		t.Fatalf("%+v %v", list, err)
	}
	if err := s.request(one, http.MethodGet, "/watches?limit=1", &list); err != nil || list.Total != 2 || len(list.Items) != 1 || list.Items[0].User != "far" {
		t.Errorf("with a limit: %+v %v", list, err)
	}
	var closed map[string]string
	if err := s.request(one, http.MethodDelete, "/watches/"+list.Items[0].ID, &closed); err != nil || closed["status"] != "closed" {
		t.Errorf("%v %v", closed, err)
	}
	<-ctx.Done()
	far.Close()
	for _, id := range []string{list.Items[0].ID, "nobody-1", one.own.Instance() + "-99", "-"} {
		if err := s.request(one, http.MethodDelete, "/watches/"+id, &closed); !services.IsReason(err, services.ReasonNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for protocol, forced := range map[string]bool{"HTTP/2.0": true, "HTTP/1.1": false} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: forced}
		t.Cleanup(transport.CloseIdleConnections)
		response, err := (&http.Client{Transport: transport}).Get("https://" + address.String()) //nolint:noctx // ends with the test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != protocol {
			t.Errorf("%s: %s", protocol, body)
		}
	}
}

// TestOnlyFrontDoorsAreAsked: whoever has no certificate of a front door gets no question, and
// those that are dead or strange are named.
func TestOnlyFrontDoorsAreAsked(t *testing.T) {
	s := newSuite(t)
	one, _ := s.open(s.Identity(s.Authority, "frontdoor"), (*Handlers).answer)
	refused := func(_ *Handlers, q peers.Question) peers.Answer {
		t.Errorf("%+v was asked", q)
		return peers.Answer{}
	}
	other, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	thief, _ := s.open(s.Identity(s.Authority, "authz"), refused)
	forger, _ := s.open(s.Identity(other, "frontdoor"), refused)
	liar, _ := s.open(s.Identity(s.Authority, "frontdoor"), func(*Handlers, peers.Question) peers.Answer { return peers.Answer{Instance: "else", Total: 7} })
	talker, _ := s.open(s.Identity(s.Authority, "frontdoor"), func(h *Handlers, _ peers.Question) peers.Answer {
		return peers.Answer{Instance: h.own.Instance(), Watches: []watches.Watch{{User: strings.Repeat("x", 5<<20)}}}
	})
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	s.announce(records.Announced{Instance: "gone", Host: "gone", At: gone.Addr().String()})
	s.announce(records.Announced{Host: "earlier"})
	_, far := talker.own.Open(t.Context(), watches.Watch{User: "far"})
	defer far.Close()
	var list watchList
	if err := s.request(one, http.MethodGet, "/watches", &list); err != nil || list.Total != 0 {
		t.Fatalf("%+v %v", list, err)
	}
	got := list.errors()
	for host, want := range map[string]string{thief.Peers.Host: "does not respond", forger.Peers.Host: "does not respond", "gone": "does not respond",
		liar.Peers.Host: "another front door", talker.Peers.Host: "more than", "earlier": "its release"} {
		if !strings.Contains(got[host], want) {
			t.Errorf("%s: %q, want %q", host, got[host], want)
		}
	}
	var closed map[string]string
	if err := s.request(one, http.MethodDelete, "/watches/gone-1", &closed); !services.IsReason(err, services.ReasonServiceUnavailable) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("closing a watch of one that is gone: %v", err)
	}
}

// TestASilentFrontDoor is named, and the answer does not wait for it.
func TestASilentFrontDoor(t *testing.T) {
	s := newSuite(t)
	one, _ := s.open(s.Identity(s.Authority, "frontdoor"), (*Handlers).answer)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s.announce(records.Announced{Instance: "silent", Host: "silent", At: silent.Addr().String()})
	one.Peers.Timeout = 50 * time.Millisecond
	var list watchList
	if err := s.request(one, http.MethodGet, "/watches", &list); err != nil || !strings.Contains(list.errors()["silent"], "does not respond") {
		t.Errorf("%+v %v", list, err)
	}
}

// TestOnlyFrontDoorsAreAnswered: the protocol of front doors has no answer for clients, with and
// without certificates.
func TestOnlyFrontDoorsAreAnswered(t *testing.T) {
	s := newSuite(t)
	_, address := s.open(s.Identity(s.Authority, "frontdoor"), func(_ *Handlers, q peers.Question) peers.Answer {
		t.Errorf("%+v was answered", q)
		return peers.Answer{}
	})
	other, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	strict := s.Identity(s.Authority, "frontdoor").ClientConfig("frontdoor", "portico-frontdoor/1")
	for who, change := range map[string]func(*tls.Config){
		"no certificate":                 func(c *tls.Config) { c.Certificates = nil },
		"a certificate of authz":         func(c *tls.Config) { c.Certificates = s.Identity(s.Authority, "authz").ClientConfig("").Certificates },
		"a certificate of another suite": func(c *tls.Config) { c.Certificates = s.Identity(other, "frontdoor").ClientConfig("").Certificates },
	} {
		config := strict.Clone()
		change(config)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address.String())
		if err != nil {
			continue // refused in the handshake
		}
		_, _ = io.WriteString(conn, `{"watches":1}`)
		if answer, err := io.ReadAll(conn); len(answer) > 0 {
			t.Errorf("%s: %s %v", who, answer, err)
		}
		_ = conn.Close()
	}
}
