package watchhub

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

// sealedBy returns values whose pods a plugin encrypts. Each result has a seed of its own.
func sealedBy(t *testing.T, plugin *kmsplugin.Plugin) *atrest.Values {
	t.Helper()
	return testbed.Encrypted(t, "{kms: {apiVersion: v2, name: a, endpoint: '"+plugin.Endpoint()+"', timeout: 2s}}")
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// await waits until a text has been logged.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	for until := time.Now().Add(followTimeout); ; <-time.After(time.Millisecond) {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), text)
		l.mu.Unlock()
		if found {
			return
		} else if time.Now().After(until) {
			t.Fatalf("%q is not logged", text)
		}
	}
}

// TestUnreadableChanges: a change that the hub cannot decrypt because the KMS plugin is away is published
// when it is back, and nothing before. After one that nobody can decrypt, followers have to list again.
func TestUnreadableChanges(t *testing.T) {
	plugin := kmsplugin.Start(t)
	b, log := &rig{etcd: testbed.StartEtcd(t), nats: testbed.StartNATS(t)}, new(lines)
	b.bus = b.nats.Connect()
	b.hub = startHub(t, b.etcd, b.bus, func(c *Config) {
		c.Values, c.Log = sealedBy(t, plugin), slog.New(slog.NewTextHandler(log, nil))
	})
	b.untilPublishing(t, b.hub)
	first := b.etcd.Write(pod("now"), "now")
	source := changes.Source{Bus: b.nats.Connect(), Hub: b.hub}
	stream, err := source.Follow(t.Context(), pods, first-1)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	reach(t, stream, first)
	put := func(name, value string) int64 {
		t.Helper()
		answer, err := b.etcd.Put(t.Context(), pod(name).Path(), value)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	sealed, err := sealedBy(t, plugin).Seal(pod("sealed").Path(), testbed.Record(pod("sealed"), "sealed"))
	if err != nil {
		t.Fatal(err)
	}
	plugin.Stop()
	revision := put("sealed", string(sealed))
	after := b.etcd.Write(pod("after"), "after")
	log.await(t, "cannot be decrypted")
	if _, through := b.hub.main.window.Span(); through >= revision {
		t.Errorf("the hub has passed %d, which it cannot read yet: %d", revision, through)
	}
	plugin.Serve(t)
	if got := reach(t, stream, after); len(got) != 2 || got[0].Object.Key.Name != "sealed" || got[1].Object.Key.Name != "after" {
		t.Errorf("got %+v", got)
	}
	lost := put("lost", atrest.Prefix+"aesgcm:v1:gone:bytes")
	ctx, cancel := context.WithTimeout(t.Context(), followTimeout)
	defer cancel()
	for err == nil {
		_, err = stream.Next(ctx)
	}
	if !services.IsReason(err, services.ReasonExpired) {
		t.Fatalf("a change was lost, and the follower got %v", err)
	}
	again, err := source.Follow(t.Context(), pods, lost)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := reach(t, again, b.etcd.Write(pod("last"), "last")); len(got) != 1 {
		t.Errorf("after the lost change: %+v", got)
	}
}
