// Package peers connects front doors with each other. They find each other by the records that package
// ownservice keeps, which the API does not serve, and connect to the port that clients use, by mutual TLS with
// certificates of the suite's authority, in which both must be named frontdoor. There are two protocols: one
// question and one answer in JSON, for what only one of them knows, and HTTP/1.1, for requests that one
// forwards to another.
//
// It decides nothing about users: the front door of the user has authenticated and
// authorized the request. docs/decisions/0060 and 0063 have the reasons.
package peers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads/watches"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

const (
	// protocol is the name in the TLS handshake (ALPN). Front doors whose questions or answers
	// mean something else have another.
	protocol = "portico-frontdoor/1"
	// service is the name that certificates of front doors have.
	service = "frontdoor"
	// askTimeout bounds a conversation, maxQuestion and maxAnswer its bytes, and maxAsked how
	// many front doors are called for one request.
	askTimeout  = 2 * time.Second
	maxQuestion = 4 << 10
	maxAnswer   = 4 << 20
	maxAsked    = 32
)

// Question is what one front door asks another: one of the fields.
type Question struct {
	// Watches requests up to so many open watches.
	Watches int `json:"watches,omitempty"`
	// Close asks to end the watch with this ID.
	Close string `json:"close,omitempty"`
	// Served requests the built-in types that it serves.
	Served bool `json:"served,omitempty"`
}

// Answer is the answer of the front door Instance.
type Answer struct {
	Instance string          `json:"instance"`
	Watches  []watches.Watch `json:"watches,omitempty"`
	Total    int             `json:"total,omitempty"` // of all watches, also beyond the limit
	Closed   bool            `json:"closed,omitempty"`
	// Served are the groups of the types.
	Served []apidiscovery.APIGroupDiscovery `json:"served,omitempty"`
}

// Digest identifies what a front door serves.
func Digest(served []apidiscovery.APIGroupDiscovery) (string, error) {
	raw, err := json.Marshal(served)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]), nil
}

// Config configures Peers.
type Config struct {
	// Identity is that of the process among those of the suite. Without one this front door asks no other front
	// door and answers none.
	Identity *peertls.Identity
	Store    services.Store
	// Instance and Host are those of this front door, Release is its emulated version, and Served
	// identifies the built-in types that it serves.
	Instance, Host, Release, Served string
	// Answer answers a question about this front door.
	Answer func(Question) Answer
	// Timeout bounds a conversation; 2 seconds if it is 0.
	Timeout time.Duration
	Log     *slog.Logger
}

// Peers are the front doors of the suite.
type Peers struct{ Config }

// Reply is what a front door has answered, or why it has not.
type Reply struct {
	From   records.Announced
	Answer Answer
	Err    error
}

// Announced returns what this front door says about itself to the others: listening is the
// address of its port, and ip the address of its host for others, empty if it is unknown.
func (p *Peers) Announced(listening net.Addr, ip string) records.Announced {
	at := listening.String()
	if tcp, ok := listening.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		at = ""
		if ip != "" {
			at = net.JoinHostPort(ip, strconv.Itoa(tcp.Port))
		}
	}
	return records.Announced{Instance: p.Instance, Host: p.Host, At: at, Release: p.Release, Served: p.Served}
}

func (p *Peers) timeout() time.Duration { return cmp.Or(p.Timeout, askTimeout) }

// list returns the front doors of the suite, this one included.
func (p *Peers) list(ctx context.Context) ([]records.Announced, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return records.List(ctx, p.Store)
}

// All asks all front doors at the same time. The first reply is that of this one. If the others
// are unknown because the store does not answer, one reply says so.
func (p *Peers) All(ctx context.Context, q Question) []Reply {
	all, err := p.list(ctx)
	replies := []Reply{{From: records.Announced{Instance: p.Instance, Host: p.Host}, Answer: p.Answer(q)}}
	for _, found := range all {
		if found.Instance == p.Instance {
			replies[0].From = found
			continue
		}
		replies = append(replies, Reply{From: found})
	}
	if err != nil {
		return append(replies, Reply{Err: fmt.Errorf("other front doors are unknown: %w", err)})
	}
	var group sync.WaitGroup
	for i := range replies[1:] {
		reply := &replies[i+1]
		if i >= maxAsked {
			reply.Err = errTooMany
			continue
		}
		group.Go(func() { reply.Answer, reply.Err = p.Ask(ctx, reply.From, q) })
	}
	group.Wait()
	return replies
}

// One asks the front door with an instance; NotFound (404) if there is none.
func (p *Peers) One(ctx context.Context, instance string, q Question) (Reply, error) {
	if instance == p.Instance {
		return Reply{Answer: p.Answer(q)}, nil
	}
	all, err := p.list(ctx)
	if err != nil {
		return Reply{}, err
	}
	for _, found := range all {
		if found.Instance == instance && instance != "" {
			answer, err := p.Ask(ctx, found, q)
			return Reply{found, answer, err}, nil
		}
	}
	return Reply{}, services.NotFound("", "front doors", instance)
}
