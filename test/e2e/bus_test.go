package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// busPatience bounds the wait for a message.
const busPatience = 20 * time.Second

// testBus is an attacker with the certificate of a service that reads the bus, and
// one with a certificate of the same authority that no service has.
func testBus(t *testing.T, s *suite, c *cluster.Cluster) {
	connect := func(name string, failures chan error) (*nats.Conn, error) {
		files := s.issue(t, "attacker-"+name, name)
		return nats.Connect("tls://"+s.addresses["nats"], nats.RootCAs(files.CA), nats.ClientCert(files.Cert, files.Key),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { failures <- err }))
	}
	if stranger, err := connect("nobody", make(chan error, 9)); err == nil {
		stranger.Close()
		t.Error("a stranger is let in")
	}
	failures := make(chan error, 9)
	attacker, err := connect("authz", failures)
	if err != nil {
		t.Fatal(err)
	}
	defer attacker.Close()
	heard, err := attacker.SubscribeSync("changes.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := attacker.FlushTimeout(busPatience); err != nil {
		t.Fatal(err)
	}

	const value = "not for everybody"
	coded := base64.StdEncoding.EncodeToString([]byte(value))
	answer := c.Ask(t, cluster.Request{Method: "POST", Path: "/api/v1/namespaces/default/secrets",
		Body: fmt.Sprintf(`{"metadata":{"name":"overheard"},"data":{"key":%q}}`, coded)})
	if answer.Code/100 != 2 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for found := false; !found; {
		m, err := heard.NextMsg(busPatience)
		if err != nil {
			t.Fatalf("waiting for the change of the secret: %v", err)
		}
		found = m.Subject == "changes.core.secrets"
		for _, plain := range []string{value, coded, "overheard", "metadata"} {
			if bytes.Contains(m.Data, []byte(plain)) {
				t.Errorf("a message on %s shows %q", m.Subject, plain)
			}
		}
	}
	if err := attacker.Publish("changes.core.secrets", []byte("forged")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failures:
		if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Error(err)
		}
	case <-time.After(busPatience):
		t.Error("a reader may publish")
	}
}
