package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services/kit/bus"
)

// TestWake: a follower is woken for its subject until it stops, by every connection of the
// process, and not by other servers.
func TestWake(t *testing.T) {
	s := serve(t, -1, nil)
	local := bus.NewLocal(s)
	connect := func(options ...nats.Option) *nats.Conn {
		conn, err := nats.Connect(s.ClientURL(), options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	inside, outside := connect(nats.InProcessServer(local)), connect()
	if !bus.Private(inside) || bus.Private(outside) {
		t.Error("only the connection inside of the process is private")
	}
	woken := map[string]int{}
	count := func(name string) func() { return func() { woken[name]++ } }
	stopFirst := bus.OnWake(inside, "a", count("first"))
	stopSecond := bus.OnWake(inside, "a", count("second"))
	bus.OnWake(outside, "a", count("outside"))()
	bus.Wake(inside, "a")
	bus.Wake(inside, "b")
	bus.Wake(outside, "a")
	stopFirst()
	bus.Wake(connect(nats.InProcessServer(local)), "a")
	stopSecond()
	bus.Wake(inside, "a")
	if woken["first"] != 1 || woken["second"] != 2 || woken["outside"] != 0 {
		t.Errorf("woken: %v", woken)
	}
}
