package writes

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// client writes through its own handlers, like one of several front doors.
type client struct {
	t        testing.TB
	engine   *typesystem.Engine
	handlers *Handlers
	code     atomic.Int64 // of the last response
}

func newClient(t testing.TB, store services.Store, network string) *client {
	t.Helper()
	e := handlertest.Engine(t)
	networks, err := serviceips.ParseNetworks(strings.Split(network, ","))
	if err != nil {
		t.Fatal(err)
	}
	ports, err := serviceips.ParsePorts("30000-30063")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	v := vocabulary.K8s()
	codec := wire.New(wire.Config{Vocabulary: v})
	tokens, err := reads.NewTokens(reads.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, engine: e, handlers: &Handlers{Store: store, Admission: handlertest.AdmitAll{}, Codec: codec, Vocabulary: v, Log: log,
		Reads:     reads.New(reads.Config{Store: store, Codec: codec, Tokens: tokens, TokenLifetime: time.Minute}),
		Allow:     func(*request.Request, services.Attributes) error { return nil },
		Addresses: serviceips.New(serviceips.Config{Store: store, Networks: networks, NodePorts: ports, Log: log})}}
}

// do sends a request and returns the object of the response.
func (c *client) do(method, path, body string) (map[string]any, error) {
	c.t.Helper()
	raw, err := c.bytes(method, path, body)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		c.t.Error(err)
	}
	return object, nil
}

// bytes sends a request and returns the body of the response. The method APPLY is a
// server-side apply.
func (c *client) bytes(method, path, body string) ([]byte, error) {
	c.t.Helper()
	media := "application/json"
	switch method {
	case http.MethodPatch:
		media = "application/merge-patch+json"
	case "APPLY":
		method, media = http.MethodPatch, "application/apply-patch+yaml"
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	req := &request.Request{Request: r, User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
	if _, err := req.Identify(c.engine); err != nil {
		c.t.Error(err)
		return nil, err
	}
	serve := c.handlers.Write
	switch req.Verb {
	case "delete":
		serve = c.handlers.Delete
	case "deletecollection":
		serve = c.handlers.DeleteCollection
	}
	w := httptest.NewRecorder()
	if err := serve(w, req); err != nil {
		return nil, err
	}
	c.code.Store(int64(w.Code))
	return w.Body.Bytes(), nil
}

// must is do for a request that must succeed.
func (c *client) must(method, path, body string) map[string]any {
	c.t.Helper()
	object, err := c.do(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return object
}

// refused is do for a request that must fail with a reason.
func (c *client) refused(reason, method, path, body string) {
	c.t.Helper()
	if _, err := c.do(method, path, body); !services.IsReason(err, reason) {
		c.t.Errorf("%s %s: got %v, want %s", method, path, err, reason)
	}
}
