package ownservice

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

// Address is where a front door is reached.
type Address struct {
	IP   string `json:"ip"`
	Port int    `json:"port"`
}

// valid reports whether endpoints may have the address: not those of the host itself.
func (a Address) valid() bool {
	ip := net.ParseIP(a.IP)
	return ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast() && a.Port > 0
}

// name is that of the record.
func (a Address) name() string {
	return strings.ReplaceAll(a.IP, ":", ".") + "-" + strconv.Itoa(a.Port)
}

// records is where they are kept, outside of what the API shows.
var records = resource.GroupResource{Group: "portico", Resource: "front-doors"}

// record is what a front door says of itself.
type record struct {
	Metadata map[string]string `json:"metadata"`
	Address  Address           `json:"address"`
	// Renewed makes each renewal a change. Nobody compares it with a clock: those of front
	// doors may differ.
	Renewed int64 `json:"renewed"`
}

// sighting is when a record was first seen as it is.
type sighting struct {
	revision int64
	at       time.Time
}

// peers are the front doors that run. It is used by one goroutine.
type peers struct {
	store services.Store
	seen  map[string]sighting // by the names of records
}

// renew writes the record of a front door.
func (p *peers) renew(ctx context.Context, self Address, now time.Time) error {
	key := resource.Key{GroupResource: records, Name: self.name()}
	raw, err := json.Marshal(record{map[string]string{"name": key.Name}, self, now.UnixNano()})
	if err != nil {
		return err
	}
	content := services.Content{JSON: raw}
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key})
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		_, err = p.store.Create(ctx, services.CreateRequest{Key: key, Content: content})
		return err
	case err != nil:
		return err
	}
	_, err = p.store.Update(ctx, services.UpdateRequest{Key: key, Revision: stored.Revision, Content: content})
	return err
}

// alive returns the addresses of the records that move, and removes those that have
// stood still for too long.
func (p *peers) alive(ctx context.Context, now time.Time) ([]Address, error) {
	var alive []Address
	var dead []services.Object
	seen := map[string]sighting{}
	_, err := services.ForEach(ctx, p.store, services.ListRequest{GroupResource: records}, func(o services.Object) error {
		last, known := p.seen[o.Key.Name]
		if !known || last.revision != o.Revision {
			last = sighting{o.Revision, now}
		}
		if now.Sub(last.at) > deadAfter {
			dead = append(dead, o)
			return nil
		}
		seen[o.Key.Name] = last
		var r record
		if err := json.Unmarshal(o.JSON, &r); err == nil && r.Address.valid() {
			alive = append(alive, r.Address)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.seen = seen
	for _, o := range dead {
		if err := p.remove(ctx, o.Key.Name, o.Revision); err != nil {
			return nil, err
		}
	}
	return alive, nil
}

// remove removes a record, at a revision unless that is 0. One that is gone, or has moved
// again, stays as it is.
func (p *peers) remove(ctx context.Context, name string, revision int64) error {
	_, err := p.store.Delete(ctx, services.DeleteRequest{Key: resource.Key{GroupResource: records, Name: name}, Revision: revision})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return nil
	}
	return err
}
