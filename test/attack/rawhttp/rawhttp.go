// Package rawhttp is a misbehaving HTTP client: it sends arbitrary bytes, endless headers
// and bodies, streams that are never read, and requests that are canceled at once. Callers
// check the responses. All connections are closed when their context ends.
package rawhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxAnswer bounds the body of a response, in bytes.
const maxAnswer = 4 << 20

// Server is the server to connect to.
type Server struct {
	Address string
	Roots   *x509.CertPool
	// Certificates are the client certificates.
	Certificates []tls.Certificate
}

// Dial opens a TLS connection with one protocol: "http/1.1" or "h2". It is closed when ctx
// ends.
func (s Server) Dial(ctx context.Context, protocol string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 10 * time.Second},
		Config:    &tls.Config{ServerName: host, RootCAs: s.Roots, Certificates: s.Certificates, NextProtos: []string{protocol}},
	}
	conn, err := dialer.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	secure := conn.(*tls.Conn)
	if got := secure.ConnectionState().NegotiatedProtocol; got != protocol {
		_ = conn.Close()
		return nil, fmt.Errorf("the server chose %q, not %q", got, protocol)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return secure, nil
}

// Exchange sends arbitrary bytes over a new connection and returns the responses until the
// server closes it, or until the timeout.
func (s Server) Exchange(ctx context.Context, sent string, timeout time.Duration) ([]Answer, error) {
	conn, err := s.Dial(ctx, "http/1.1")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.WriteString(conn, sent); err != nil {
		return nil, nil // refused before all was sent: there may be no response
	}
	var answers []Answer
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return answers, nil
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		answers = append(answers, Answer{response.StatusCode, response.Header, string(body)})
		if err != nil {
			return answers, nil
		}
	}
}

// Answer is one response.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// SlowBodies opens connections that send the headers of a request and one byte of its body,
// and then nothing. It returns the number of opened connections, which stay open until ctx
// ends or the server closes them.
func (s Server) SlowBodies(ctx context.Context, n int, head string) (opened int, err error) {
	return s.many(ctx, n, head+"\r\n\r\n{")
}

// SlowHeaders opens connections that send a part of the headers and then nothing.
func (s Server) SlowHeaders(ctx context.Context, n int) (opened int, err error) {
	return s.many(ctx, n, "GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ")
}

// IncompleteHandshakes opens connections that begin a TLS handshake and then send nothing. It returns a
// function that waits until the server has closed all of them; an error if ctx ends before.
func (s Server) IncompleteHandshakes(ctx context.Context, n int) (closed func(ctx context.Context) error, err error) {
	conns := make([]net.Conn, n)
	for i := range conns {
		if conns[i], err = (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", s.Address); err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conns[i].Close() })
		if _, err = conns[i].Write([]byte{0x16, 3, 1, 0x40, 0}); err != nil { // a record of 16 KiB
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		for _, conn := range conns {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			if _, err := io.Copy(io.Discard, conn); ctx.Err() != nil {
				return fmt.Errorf("the server keeps connections without a handshake: %w", err)
			}
		}
		return nil
	}, nil
}

func (s Server) many(ctx context.Context, n int, start string) (int, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var opened int
	var errs []error
	places := make(chan struct{}, 16) // concurrent handshakes
	for range n {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			conn, err := s.Dial(ctx, "http/1.1")
			if err == nil {
				_, err = io.WriteString(conn, start)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			opened++
		})
	}
	group.Wait()
	if opened == 0 {
		return 0, errors.Join(errs...)
	}
	return opened, nil
}

// Head returns the request line and headers of an HTTP/1.1 request, without the empty line.
func Head(method, path string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost"}, headers...)
	return strings.Join(lines, "\r\n")
}
