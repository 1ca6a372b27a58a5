package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestFewDescriptorsOfServices: clients without a certificate that open as many connections to the
// store and the hub as these may have disturb no requests, and keep no restarted front door out.
func TestFewDescriptorsOfServices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts eleven processes")
	}
	const limit = 96
	s := newSuite(t, vocabulary.Platform())
	door := program{}
	for _, p := range programs() {
		p.descriptors = limit
		if p.name == "frontdoor" {
			door = p
		}
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	names := []string{"store", "watch-hub"}
	for _, name := range names {
		for range limit {
			conn, err := net.Dial("tcp", s.addresses[name])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
	}
	for _, name := range names {
		eventually(t, name+" logs that strangers yield", func() bool { return strings.Contains(s.processes[name].log(), "new connections end others") })
	}
	create := func(name string) {
		t.Helper()
		answer := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps",
			Body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`})
		if answer.Code/100 != 2 {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
	create("meanwhile")
	s.processes["frontdoor"].stop(t)
	s.start(t, door)
	c = s.connect(t, "frontdoor")
	create("later")
	for name, p := range s.processes {
		if p.hasEnded() || strings.Contains(p.log(), "too many open files") {
			t.Errorf("%s: %s", name, p.tail())
		}
	}
}

// TestFewDescriptors: under a small limit on open files, clients that open as many connections
// end nothing: requests of a client that is connected are answered, with files and connections
// of the process, a new client is served once others leave or are too slow, and the log says why it
// waits.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	for _, limit := range []int{64, 256} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			t.Parallel()
			address, err := loopback.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			status, err := loopback.FreeAddress()
			if err != nil {
				t.Fatal(err)
			}
			a := &allInOne{Cluster: &cluster.Cluster{Dir: t.TempDir(), Vocabulary: vocabulary.Platform()}, address: address, descriptors: limit}
			a.start(t, "--status-address="+status)
			early := a.client(t, "h2")
			create := func(client *http.Client, name string, within time.Duration) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/api/v1/namespaces/default/configmaps",
					strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"}}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+a.Token)
				r.Header.Set("Content-Type", "application/json")
				response, err := client.Do(r)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				_ = response.Body.Close()
				if response.StatusCode/100 != 2 {
					t.Errorf("%s: %s", name, response.Status)
				}
			}
			create(early, "before", patience)
			for range limit {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			eventually(t, "the log says that clients wait", func() bool { return strings.Contains(a.process.log(), "new connections wait") })
			create(early, "meanwhile", patience)
			health, err := http.Get("http://" + status + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			_ = health.Body.Close()
			if health.StatusCode != http.StatusOK {
				t.Errorf("readyz meanwhile: %s", health.Status)
			}
			open, err := os.ReadDir("/proc/" + strconv.Itoa(a.process.cmd.Process.Pid) + "/fd")
			if err != nil || len(open) >= limit {
				t.Errorf("%d files are open, %v", len(open), err)
			}
			began := time.Now()
			create(a.client(t, "h2"), "late", 2*patience) // once the first handshakes have timed out, twice where few are served at a time
			t.Logf("a new client was served after %v; %d files were open", time.Since(began).Round(time.Second), len(open))
			for _, line := range strings.Split(a.process.log(), "\n") {
				if strings.Contains(line, "too many open files") {
					t.Errorf("in the log: %s", line)
				}
			}
		})
	}
}
