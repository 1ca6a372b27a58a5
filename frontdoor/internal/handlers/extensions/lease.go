package extensions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// renewEvery is the period of renewal, and takeAfter the time without renewal after
	// which another front door takes the record.
	renewEvery = 3 * time.Second
	takeAfter  = 10 * time.Second
	// leaveTimeout bounds the removal of the record when a front door stops.
	leaveTimeout = 2 * time.Second
)

// lease is a record in the store, which the API does not serve, of which front door checks
// the extensions. If each front door wrote what it sees, two that see different things
// would overwrite each other without end. It must be used by one goroutine.
type lease struct {
	store services.Store
	self  string
	// revision of another front door's record, and when this one first saw it, by its own
	// clock.
	revision int64
	seen     time.Time
	mine     bool
}

func newLease(store services.Store) *lease { return &lease{store: store, self: rand.Text()} }

var leaseKey = resource.Key{GroupResource: resource.GroupResource{Group: "portico", Resource: "front-door-leases"}, Name: "extensions"}

// leaseRecord is the stored record. Renewed makes each renewal change it.
type leaseRecord struct {
	Metadata map[string]string `json:"metadata"`
	Holder   string            `json:"holder"`
	Renewed  int64             `json:"renewed"`
}

// renew renews or takes the record, and reports whether this front door has it.
func (l *lease) renew(ctx context.Context, now time.Time) (bool, error) {
	l.mine = false
	raw, err := json.Marshal(leaseRecord{map[string]string{"name": leaseKey.Name}, l.self, now.UnixNano()})
	if err != nil {
		return false, err
	}
	content := services.Content{JSON: raw}
	stored, err := l.store.Get(ctx, services.GetRequest{Key: leaseKey})
	if services.IsReason(err, services.ReasonNotFound) {
		_, err = l.store.Create(ctx, services.CreateRequest{Key: leaseKey, Content: content})
		return l.won(err)
	}
	if err != nil {
		return false, err
	}
	var record leaseRecord
	if err := json.Unmarshal(stored.JSON, &record); err != nil {
		return false, err
	}
	if record.Holder != l.self {
		if stored.Revision != l.revision {
			l.revision, l.seen = stored.Revision, now
		}
		if now.Sub(l.seen) < takeAfter {
			return false, nil
		}
	}
	_, err = l.store.Update(ctx, services.UpdateRequest{Key: leaseKey, Revision: stored.Revision, Content: content})
	return l.won(err)
}

// won returns the result of an attempt to write the record. Losing against another front
// door is no error.
func (l *lease) won(err error) (bool, error) {
	if services.IsReason(err, services.ReasonAlreadyExists) || services.IsReason(err, services.ReasonConflict) || services.IsReason(err, services.ReasonNotFound) {
		return false, nil
	}
	l.mine = err == nil
	return l.mine, err
}

// leave removes the record if it is that of this front door, so that another one need not
// wait.
func (l *lease) leave(ctx context.Context) error {
	if !l.mine {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	stored, err := l.store.Get(last, services.GetRequest{Key: leaseKey})
	var record leaseRecord
	if err != nil || json.Unmarshal(stored.JSON, &record) != nil || record.Holder != l.self {
		return err
	}
	_, err = l.store.Delete(last, services.DeleteRequest{Key: leaseKey, Revision: stored.Revision})
	return err
}
