package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// probeEvery is the pause between two probes of a member, and silentAfter how long it may take to
	// respond: much longer than an etcd that is only busy.
	probeEvery, silentAfter = time.Second, 2 * time.Second
)

// members are the members of one cluster. Each is probed over a connection of its own. A member whose
// disk hangs keeps its connections, and so does one behind a broken link for 15 s. The client would go
// on to send it every nth request, and watches and leases would wait for it. While a member does not
// respond and another one does, the client has no connection to it.
type members struct {
	client *clientv3.Client
	log    *slog.Logger

	mu  sync.Mutex
	all []*member
}

type member struct {
	endpoint string
	conn     net.Conn  // the last one of the client
	answered time.Time // when it last responded to a probe
	away     bool
}

// Connect returns a client of a cluster and does not wait for its servers. Closing the client also
// ends what watches the members.
func Connect(config clientv3.Config, log *slog.Logger) (*clientv3.Client, error) {
	if len(config.Endpoints) < 2 {
		return clientv3.New(config)
	}
	m := &members{log: log}
	for _, endpoint := range config.Endpoints {
		m.all = append(m.all, &member{endpoint: endpoint})
	}
	probe := config
	config.DialOptions = append(slices.Clip(config.DialOptions), grpc.WithContextDialer(m.dial))
	var err error
	if m.client, err = clientv3.New(config); err != nil {
		return nil, err
	}
	for _, one := range m.all {
		probe.Endpoints = []string{one.endpoint}
		client, err := clientv3.New(probe)
		if err != nil {
			return nil, errors.Join(err, m.client.Close())
		}
		go m.watch(one, client)
	}
	return m.client, nil
}

// dial is how the client connects to a member.
func (m *members) dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		if one.address() == address {
			one.conn = conn
		}
	}
	return conn, nil
}

// address returns the host and port of a URL, or the endpoint if it is no URL.
func (m *member) address() string {
	if u, err := url.Parse(m.endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return m.endpoint
}

// watch probes a member until the client is closed. The probe is a linearizable read: it also fails
// at a member that is cut off from the others.
func (m *members) watch(one *member, probe *clientv3.Client) {
	defer func() { _ = probe.Close() }()
	for ctx := m.client.Ctx(); retry.Pause(ctx, probeEvery); {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, silentAfter)
		_, err := probe.Get(bounded, resource.Root, clientv3.WithCountOnly())
		silent := bounded.Err() != nil
		cancel()
		if ctx.Err() == nil {
			m.note(one, began, err != nil && silent)
		}
	}
}

// note takes the result of a probe. If no member responds, etcd is away, and nothing changes.
func (m *members) note(one *member, began time.Time, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !silent:
		one.answered = time.Now()
		if one.away {
			one.away = false
			m.client.SetEndpoints(m.present()...)
			m.log.Info("a member of etcd responds again", "endpoint", one.endpoint)
		}
	case !one.away && slices.ContainsFunc(m.all, func(other *member) bool { return other != one && !other.away && other.answered.After(began) }):
		one.away = true
		m.client.SetEndpoints(m.present()...)
		if one.conn != nil {
			// Requests that are under way fail, and go to another member if they may be repeated.
			_ = one.conn.Close()
		}
		m.log.Warn("a member of etcd does not respond, others are used", "endpoint", one.endpoint)
	}
}

// present returns the endpoints of the members that are not away. The caller holds mu.
func (m *members) present() (endpoints []string) {
	for _, one := range m.all {
		if !one.away {
			endpoints = append(endpoints, one.endpoint)
		}
	}
	return endpoints
}
