package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	refreshEvery = time.Second
	// aliveTime is the timeout of /livez, and readyTime that of /readyz: longer than the
	// checks of a front door may take.
	aliveTime = time.Second
	readyTime = 3 * time.Second
	// dialTime bounds the attempt to connect to one front door.
	dialTime = time.Second
	// maxSilent is the number of consecutive probes without any answer after which the
	// connections of a front door are closed, so that clients connect to another one, and the
	// number of failed ones after which an address without a name is forgotten.
	maxSilent = 2
)

// balancer forwards each connection to the front door with the fewest connections.
type balancer struct {
	log     *slog.Logger
	resolve func(context.Context) ([]string, error)
	tls     *tls.Config

	mu    sync.Mutex
	doors map[string]*door
}

// door is a front door at one address.
type door struct {
	address string
	client  *http.Client

	// Guarded by the balancer's lock.
	ready  bool // the last /readyz succeeded
	failed int  // consecutive failures of /livez
	silent int  // those of them that had no answer
	conns  map[net.Conn]struct{}
	taken  int // connections, including those being established
}

func newBalancer(log *slog.Logger, resolve func(context.Context) ([]string, error), security *tls.Config) *balancer {
	return &balancer{log: log, resolve: resolve, tls: security, doors: map[string]*door{}}
}

// watch refreshes the front doors until ctx ends.
func (b *balancer) watch(ctx context.Context) error {
	ticks := time.NewTicker(refreshEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			b.refresh(ctx)
		}
	}
}

// refresh resolves the name and probes all front doors. Those that the name no longer
// resolves to are removed when they fail.
func (b *balancer) refresh(ctx context.Context) {
	found, err := b.resolve(ctx)
	if err != nil {
		b.log.Debug("the name of the front doors cannot be resolved", "error", err)
	}
	var group sync.WaitGroup
	for _, d := range b.known(found) {
		group.Go(func() {
			ready, err := d.probe(ctx)
			b.note(d, slices.Contains(found, d.address), ready, err)
		})
	}
	group.Wait()
}

// known adds the addresses found, and returns all doors.
func (b *balancer) known(found []string) (all []*door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, address := range found {
		if b.doors[address] == nil {
			b.doors[address] = &door{address: address, conns: map[net.Conn]struct{}{}, client: &http.Client{
				Transport: &http.Transport{TLSClientConfig: b.tls.Clone(), DisableKeepAlives: true}}}
		}
	}
	for _, d := range b.doors {
		all = append(all, d)
	}
	return all
}

// probe returns an error if /livez does not respond, and otherwise whether the front door
// is ready.
func (d *door) probe(ctx context.Context) (ready bool, err error) {
	if _, err := d.get(ctx, "/livez", aliveTime); err != nil {
		return false, err
	}
	code, err := d.get(ctx, "/readyz", readyTime)
	return err == nil && code == http.StatusOK, nil
}

func (d *door) get(ctx context.Context, path string, within time.Duration) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.address+path, nil)
	if err != nil {
		return 0, err
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// note records the result of a probe.
func (b *balancer) note(d *door, named, ready bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ready != d.ready {
		b.log.Info("front door", "address", d.address, "ready", ready)
	}
	d.ready = ready
	if err == nil {
		d.failed, d.silent = 0, 0
		return
	}
	if d.failed++; refused(err) {
		d.silent = 0
	} else {
		d.silent++
	}
	silent := d.silent >= maxSilent
	if silent {
		for conn := range d.conns {
			_ = conn.Close()
		}
	}
	if !named && d.failed >= maxSilent && (silent || len(d.conns) == 0) && b.doors[d.address] == d {
		delete(b.doors, d.address)
	}
}

// refused reports whether something has answered by closing the connection. A front door that stops takes
// no connection, and finishes the requests that it has; the system of one that has ended closes them.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
}

// ready returns how many front doors are ready.
func (b *balancer) ready() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doors {
		if d.ready {
			n++
		}
	}
	return n
}

// next returns the best door that has not been tried, and counts a connection to it; nil
// if there is none. Ready ones are preferred to live ones, then those with the fewest
// connections.
func (b *balancer) next(tried []*door) (best *door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doors {
		if d.failed > 0 || slices.Contains(tried, d) {
			continue
		}
		if best == nil || d.ready && !best.ready || d.ready == best.ready && d.taken < best.taken {
			best = d
		}
	}
	if best != nil {
		best.taken++
	}
	return best
}

// leave removes a connection from the count.
func (b *balancer) leave(d *door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.taken--
}

// serve accepts connections until the listener is closed.
func (b *balancer) serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			<-time.After(10 * time.Millisecond) // out of file descriptors, for example
			continue
		}
		go b.forward(conn)
	}
}

func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	var tried []*door
	for d := b.next(nil); d != nil; d = b.next(tried) {
		server, err := net.DialTimeout("tcp", d.address, dialTime)
		if err == nil {
			b.join(d, client, server)
			b.leave(d)
			return
		}
		b.leave(d)
		tried = append(tried, d)
	}
	b.log.Debug("no front door accepts a connection")
}

// join copies in both directions until both ends are closed, or one fails.
func (b *balancer) join(d *door, client, server net.Conn) {
	defer server.Close()
	b.mu.Lock()
	d.conns[server] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(d.conns, server)
		b.mu.Unlock()
	}()
	ended := make(chan struct{})
	go func() {
		// A front door that has closed its end may have sent responses before, which are still copied. One
		// whose client is gone closes its end.
		_, _ = io.Copy(server, client)
		closeWrite(server)
		close(ended)
	}()
	if _, err := io.Copy(client, server); err != nil {
		_ = client.Close()
		_ = server.Close()
	}
	closeWrite(client)
	<-ended
}

// closeWrite closes one direction of a connection.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// close ends all connections.
func (b *balancer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doors {
		for conn := range d.conns {
			_ = conn.Close()
		}
	}
}
