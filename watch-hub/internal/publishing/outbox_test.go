package publishing

import (
	"log/slog"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/watch-hub/internal/testbed"
)

var pods = resource.GroupResource{Resource: "pods"}

// TestFullOutboxIsALoss: what the outbox does not accept is a lost change, so that progress is announced.
func TestFullOutboxIsALoss(t *testing.T) {
	conn := testbed.StartNATS(t).Connect()
	master, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	p := New(conn, func() *seal.Master { return master }, slog.New(slog.DiscardHandler))
	p.out.running = true // as if it waited for NATS
	for n := 0; ; n++ {
		p.Add(services.Change{Type: services.Added, Object: services.Object{Key: resource.Key{GroupResource: pods, Namespace: "ns", Name: "a"}, Revision: int64(n + 1), JSON: make([]byte, 1<<20)}})
		if !p.Flush(time.Now()) {
			if n < 6 || n > 9 {
				t.Errorf("%d MiB were accepted", n)
			}
			break
		}
	}
	if p.out.bytes > outboxBytes {
		t.Errorf("%d bytes wait", p.out.bytes)
	}
}
