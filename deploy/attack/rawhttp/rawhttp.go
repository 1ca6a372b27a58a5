// Package rawhttp is HTTP as no well-behaved client speaks it: bytes as they are,
// headers and bodies that never end, streams that nobody reads, requests that are
// cancelled as soon as they are sent. It sends and measures; what an answer has to
// be is for its callers to say. Everything it opens is bounded by its context.
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

// maxAnswer is how much of an answer is kept.
const maxAnswer = 4 << 20

// Server is whom to talk to.
type Server struct {
	Address string
	Roots   *x509.CertPool
	// Certificates are shown to the server.
	Certificates []tls.Certificate
}

// Dial opens a TLS connection that speaks one protocol: "http/1.1" or "h2". It is
// closed with the context.
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

// Exchange sends bytes as they are over a connection of their own and returns the
// answers that come until the server closes, or the patience is over.
func (s Server) Exchange(ctx context.Context, sent string, patience time.Duration) ([]Answer, error) {
	conn, err := s.Dial(ctx, "http/1.1")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, sent); err != nil {
		return nil, nil // refused before all was sent: there may be no answer
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

// Answer is one answer.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// SlowBodies opens connections that send the head of a request and one byte of the
// body that it announces, and then nothing. It returns how many were opened; they
// stay open until the context ends or the server closes them.
func (s Server) SlowBodies(ctx context.Context, n int, head string) (opened int, err error) {
	return s.many(ctx, n, head+"\r\n\r\n{")
}

// SlowHeaders opens connections that send half a head and then nothing.
func (s Server) SlowHeaders(ctx context.Context, n int) (opened int, err error) {
	return s.many(ctx, n, "GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ")
}

func (s Server) many(ctx context.Context, n int, start string) (int, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var opened int
	var errs []error
	places := make(chan struct{}, 16) // handshakes at a time
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

// Head returns the head of an HTTP/1.1 request, without the empty line.
func Head(method, path string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost"}, headers...)
	return strings.Join(lines, "\r\n")
}
