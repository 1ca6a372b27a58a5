package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestProbe: a NATS server is well while it greets, without its monitoring page.
func TestProbe(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	address := "nats://" + s.Addr().String()
	if err := probe(address); err != nil {
		t.Error(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	if probe(address) == nil {
		t.Error("a server that has ended is well")
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if probe("nats://"+strings.TrimPrefix(other.URL, "http://")) == nil || probe(other.URL) == nil {
		t.Error("another server is well")
	}
}
