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
	"time"
)

const (
	lookEvery = time.Second
	// aliveTime is how long a front door has to say that it is there, and readyTime how
	// long to say whether it is ready: longer than its own checks may take.
	aliveTime = time.Second
	readyTime = 3 * time.Second
	// dialTime bounds the attempt to connect to one front door.
	dialTime = time.Second
	// maxSilent is how many questions in a row a front door may leave without answer
	// before its connections are closed, so that clients turn to another one.
	maxSilent = 2
)

// balancer forwards each connection to the front door that has the fewest.
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
	ready  bool // it says that it is ready
	silent int  // questions in a row that had no answer
	conns  map[net.Conn]struct{}
	taken  int // connections, with those that are being made
}

func newBalancer(log *slog.Logger, resolve func(context.Context) ([]string, error), security *tls.Config) *balancer {
	return &balancer{log: log, resolve: resolve, tls: security, doors: map[string]*door{}}
}

// watch looks for front doors until ctx ends.
func (b *balancer) watch(ctx context.Context) error {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			b.look(ctx)
		}
	}
}

// look asks for the front doors and each of them for its health. Those that the name
// no longer stands for are forgotten once they are silent.
func (b *balancer) look(ctx context.Context) {
	found, err := b.resolve(ctx)
	if err != nil {
		b.log.Debug("the name of the front doors cannot be resolved", "error", err)
	}
	var group sync.WaitGroup
	for _, d := range b.known(found) {
		group.Go(func() {
			ready, err := d.ask(ctx)
			b.note(d, slices.Contains(found, d.address), ready, err)
		})
	}
	group.Wait()
}

// known returns the doors, with those at the addresses found.
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

// ask asks a front door whether it is there, which the error says, and then whether it
// is ready.
func (d *door) ask(ctx context.Context) (ready bool, err error) {
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

// note keeps what has been found out about a door.
func (b *balancer) note(d *door, named, ready bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ready != d.ready {
		b.log.Info("front door", "address", d.address, "ready", ready)
	}
	d.ready = ready
	if err == nil {
		d.silent = 0
		return
	}
	if d.silent++; d.silent < maxSilent {
		return
	}
	for conn := range d.conns {
		_ = conn.Close()
	}
	if !named && b.doors[d.address] == d {
		delete(b.doors, d.address)
	}
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

// next takes a place at the best door that has not been tried; nil when there is none.
// Ready ones are better than those that answer at least, and then few connections count.
func (b *balancer) next(tried []*door) (best *door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.doors {
		if d.silent > 0 || slices.Contains(tried, d) {
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

// leave gives a place back.
func (b *balancer) leave(d *door) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.taken--
}

// serve takes connections until the listener is closed.
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
	b.log.Debug("no front door takes a connection")
}

// join copies both ways until both ends have said all, or one is gone.
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
		copyHalf(server, client)
		close(ended)
	}()
	copyHalf(client, server)
	<-ended
}

// copyHalf copies one direction and passes on its end. An error ends both.
func copyHalf(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
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
