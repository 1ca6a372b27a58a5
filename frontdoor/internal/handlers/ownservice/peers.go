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

// Address is the address of a front door.
type Address struct {
	IP   string `json:"ip"`
	Port int    `json:"port"`
}

// valid reports whether endpoints may have the address: it must not be loopback, link-local
// or unspecified.
func (a Address) valid() bool {
	ip := net.ParseIP(a.IP)
	return ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast() && a.Port > 0
}

// name returns the name of the record.
func (a Address) name() string {
	return strings.ReplaceAll(a.IP, ":", ".") + "-" + strconv.Itoa(a.Port)
}

// records is the resource of the records, which the API does not serve.
var records = resource.GroupResource{Group: "portico", Resource: "front-doors"}

// record announces a running front door.
type record struct {
	Metadata map[string]string `json:"metadata"`
	Address  Address           `json:"address"`
	// Renewed makes each renewal change the record. It is never compared with a clock,
	// since the clocks of front doors may differ.
	Renewed int64 `json:"renewed"`
}

// sighting is the time at which a revision of a record was first read, by the clock of
// this front door.
type sighting struct {
	revision int64
	at       time.Time
}

// peers finds the running front doors. It must be used by one goroutine.
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

// alive returns the addresses of the renewed records, and deletes records that have not
// been renewed for deadAfter.
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

// remove deletes a record at a revision, or at any revision if that is 0. It returns nil
// if the record does not exist or has another revision.
func (p *peers) remove(ctx context.Context, name string, revision int64) error {
	_, err := p.store.Delete(ctx, services.DeleteRequest{Key: resource.Key{GroupResource: records, Name: name}, Revision: revision})
	if services.IsReason(err, services.ReasonNotFound) || services.IsReason(err, services.ReasonConflict) {
		return nil
	}
	return err
}
