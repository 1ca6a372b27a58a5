// Package intruder is an attacker on the bus: with a peer certificate that names no
// service, it subscribes to everything, forges changes and replays messages.
package intruder

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/rpc"
)

// keep is the maximum number of recorded messages.
const keep = 10_000

// Intruder is a connection to NATS.
type Intruder struct {
	conn *nats.Conn

	mu    sync.Mutex
	heard []*nats.Msg
}

// Connect connects to the bus with a certificate and subscribes to everything. An error
// means that the bus rejected the connection.
func Connect(address string, files peertls.Files) (*Intruder, error) {
	conn, err := nats.Connect("tls://"+address, nats.RootCAs(files.CA), nats.ClientCert(files.Cert, files.Key),
		nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, err
	}
	i := &Intruder{conn: conn}
	if _, err = conn.Subscribe(">", i.hear); err == nil {
		err = conn.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return i, nil
}

func (i *Intruder) hear(m *nats.Msg) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.heard) < keep {
		i.heard = append(i.heard, m)
	}
}

// Heard reports whether a received message contains a text.
func (i *Intruder) Heard(text string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.heard {
		if bytes.Contains(m.Data, []byte(text)) {
			return true
		}
	}
	return false
}

// Repeat publishes the received messages whose subjects contain a word again, unchanged and
// with one byte changed, and returns their number.
func (i *Intruder) Repeat(word string) (n int) {
	i.mu.Lock()
	heard := slices.Clone(i.heard)
	i.mu.Unlock()
	for _, m := range heard {
		if !strings.Contains(m.Subject, word) {
			continue
		}
		n++
		_ = i.conn.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data, Header: m.Header})
		if len(m.Data) > 0 {
			changed := slices.Clone(m.Data)
			changed[len(changed)/2] ^= 1
			_ = i.conn.PublishMsg(&nats.Msg{Subject: m.Subject, Data: changed, Header: m.Header})
		}
	}
	_ = i.conn.Flush()
	return n
}

// subjects returns a subject, and the other received subjects that contain a word.
func (i *Intruder) subjects(first, word string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := []string{first}
	for _, m := range i.heard {
		if strings.Contains(m.Subject, word) && !slices.Contains(all, m.Subject) {
			all = append(all, m.Subject)
		}
	}
	return all
}

// Forge publishes an unsealed change on a subject and on all other subjects on which
// changes of the resource were received.
func (i *Intruder) Forge(subject string, change services.Change) error {
	encoded, err := rpc.EncodeChange(change)
	if err != nil {
		return err
	}
	message := protowire.AppendTag(nil, 1, protowire.BytesType)
	message = protowire.AppendBytes(message, encoded)
	for _, subject := range i.subjects(subject, change.Object.Key.Resource) {
		if err := i.conn.Publish(subject, message); err != nil {
			return fmt.Errorf("%s: %w", subject, err)
		}
	}
	return i.conn.Flush()
}

// Publish publishes arbitrary bytes.
func (i *Intruder) Publish(subject string, data []byte) error {
	if err := i.conn.Publish(subject, data); err != nil {
		return err
	}
	return i.conn.Flush()
}

// Close closes the connection.
func (i *Intruder) Close() { i.conn.Close() }
