// Package records holds the records by which front doors announce themselves to each other. They
// are in the store, and the API does not serve them: only front doors write them.
package records

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Address is the address of a front door.
type Address struct {
	IP   string `json:"ip"`
	Port int    `json:"port"`
}

// Valid reports whether endpoints may have the address: it must not be loopback, link-local
// or unspecified.
func (a Address) Valid() bool {
	ip := net.ParseIP(a.IP)
	return ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast() && a.Port > 0
}

// name returns the name of the record.
func (a Address) name() string {
	return strings.ReplaceAll(a.IP, ":", ".") + "-" + strconv.Itoa(a.Port)
}

// records is the resource of the records, which the API does not serve.
var records = resource.GroupResource{Group: "portico", Resource: "front-doors"}

// Resource returns the resource of the records, for those who follow their changes.
func Resource() resource.GroupResource { return records }

// Announced is what a front door says about itself to the others.
type Announced struct {
	// Instance is the ID of this run of the front door, empty if it answers no other one, and Host
	// the name of its host.
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host,omitempty"`
	// At is the host:port at which other front doors reach it; empty if it has none.
	At string `json:"at,omitempty"`
	// Release is its emulated version, and Served identifies the built-in types that it serves.
	// Both are empty for an earlier release.
	Release string `json:"release,omitempty"`
	Served  string `json:"served,omitempty"`
}

// Record announces a running front door.
type Record struct {
	Address Address `json:"address"`
	Announced
}

// stored is a record in the store.
type stored struct {
	Metadata map[string]string `json:"metadata"`
	Record
	// Renewed makes each renewal change the record. It is never compared with a clock,
	// since the clocks of front doors may differ.
	Renewed int64 `json:"renewed"`
}

// name returns the name of the record, which is the same after another start if endpoints may
// have the address.
func (r Record) name() string {
	if r.Address.Valid() {
		return r.Address.name()
	}
	return "instance-" + r.Instance
}

// maxAnnounced bounds the front doors that List returns.
const maxAnnounced = 256

// List returns the front doors that have announced themselves, ordered by their records. Only
// front doors write these: the API does not serve them. Some may have ended since.
func List(ctx context.Context, store services.Store) ([]Announced, error) {
	page, err := store.List(ctx, services.ListRequest{GroupResource: records, Limit: maxAnnounced})
	if err != nil {
		return nil, err
	}
	var all []Announced
	for _, o := range page.Objects {
		if a, err := Decode(o); err == nil {
			all = append(all, a)
		}
	}
	return all, nil
}

// Decode returns what a stored record says.
func Decode(o services.Object) (Announced, error) {
	var r stored
	if err := json.Unmarshal(o.JSON, &r); err != nil {
		return Announced{}, err
	}
	if r.At == "" && r.Address.Valid() { // an earlier release
		r.At = net.JoinHostPort(r.Address.IP, strconv.Itoa(r.Address.Port))
	}
	return r.Announced, nil
}

// sighting is the time at which a revision of a record was first read, by the clock of
// this front door.
type sighting struct {
	revision int64
	at       time.Time
}

// deadAfter is the time without renewal after which a front door is considered dead.
const deadAfter = 15 * time.Second

// Book finds the running front doors. It must be used by one goroutine.
type Book struct {
	Store services.Store
	seen  map[string]sighting // by the names of records
}

// Renew writes the record of a front door.
func (b *Book) Renew(ctx context.Context, self Record, now time.Time) error {
	key := resource.Key{GroupResource: records, Name: self.name()}
	raw, err := json.Marshal(stored{map[string]string{"name": key.Name}, self, now.UnixNano()})
	if err != nil {
		return err
	}
	content := services.Content{JSON: raw}
	before, err := b.Store.Get(ctx, services.GetRequest{Key: key})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		_, err = b.Store.Create(ctx, services.CreateRequest{Key: key, Content: content})
		return err
	case err != nil:
		return err
	}
	_, err = b.Store.Update(ctx, services.UpdateRequest{Key: key, Revision: before.Revision, Content: content})
	return err
}

// Alive returns the number of renewed records and the addresses that endpoints may have, and
// deletes records that have not been renewed for deadAfter.
func (b *Book) Alive(ctx context.Context, now time.Time) (alive []Address, count int, err error) {
	var dead []services.Object
	seen := map[string]sighting{}
	_, err = services.ForEach(ctx, b.Store, services.ListRequest{GroupResource: records}, func(o services.Object) error {
		last, known := b.seen[o.Key.Name]
		if !known || last.revision != o.Revision {
			last = sighting{o.Revision, now}
		}
		if now.Sub(last.at) > deadAfter {
			dead = append(dead, o)
			return nil
		}
		seen[o.Key.Name] = last
		count++
		var r stored
		if err := json.Unmarshal(o.JSON, &r); err == nil && r.Address.Valid() {
			alive = append(alive, r.Address)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	b.seen = seen
	for _, o := range dead {
		if err := b.remove(ctx, o.Key.Name, o.Revision); err != nil {
			return nil, 0, err
		}
	}
	return alive, count, nil
}

// Remove deletes the record of a front door.
func (b *Book) Remove(ctx context.Context, of Record) error { return b.remove(ctx, of.name(), 0) }

// remove deletes a record at a revision, or at any revision if that is 0. It returns nil
// if the record does not exist or has another revision.
func (b *Book) remove(ctx context.Context, name string, revision int64) error {
	_, err := b.Store.Delete(ctx, services.DeleteRequest{Key: resource.Key{GroupResource: records, Name: name}, Revision: revision})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return nil
	}
	return err
}
