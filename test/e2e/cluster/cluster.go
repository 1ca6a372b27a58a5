// Package cluster is a running suite as its administrator and its clients reach it:
// HTTPS with plain net/http, and the configuration of the stock clients. It decides
// nothing about what answers have to be. It serves the end-to-end tests.
package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Cluster is a running suite as its administrator sees it.
type Cluster struct {
	URL        string
	Dir        string // the data folder of its home
	Vocabulary vocabulary.Vocabulary

	// CA holds the certificates of the authorities that its clients trust.
	CA []byte
	// Token is the bearer token of the clients; empty for anonymous requests.
	Token string

	http *http.Client
}

// Connect returns the cluster at an address on this machine, with the credentials
// that its home has made in dir.
func Connect(dir, address string, v vocabulary.Vocabulary) (*Cluster, error) {
	ca, err := os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(dir, "admin-token"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &Cluster{
		URL: "https://" + address, Dir: dir, Vocabulary: v, CA: ca, Token: strings.TrimSpace(string(token)),
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}},
	}, nil
}

// ConnectAs returns the cluster at an address for a user with a client configuration,
// such as the one that an administrator of separate processes has.
func ConnectAs(config *rest.Config, v vocabulary.Vocabulary) (*Cluster, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{URL: config.Host, Vocabulary: v, CA: config.CAData, http: client}, nil
}

// WithCertificate returns the cluster for the user of a client certificate.
func (c *Cluster) WithCertificate(certificate tls.Certificate) *Cluster {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	as := *c
	as.Token = ""
	as.http = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}}}
	return &as
}

// Config returns the client configuration for the cluster.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: c.URL, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA}, QPS: -1}
}

// Client returns the stock client for resources of any type.
func (c *Cluster) Client(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Ready returns nil once the cluster says that it is ready and its own
// namespaces are there.
func (c *Cluster) Ready(ctx context.Context) error {
	paths := []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/" + c.Vocabulary.Namespace("system")}
	for _, path := range paths {
		if err := c.Await(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// Await polls until the response is 200.
func (c *Cluster) Await(ctx context.Context, path string) error {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		a, err := c.Do(ctx, Request{Path: path})
		if err == nil && a.Code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time; last answer: %d %s %v", a.Code, a.Body, err) //nolint:errorlint // may be nil
		case <-ticks.C:
		}
	}
}

// Request is one plain HTTP request; the zero values mean GET, JSON and the
// administrator.
type Request struct {
	Method, Path, Type, Body string
	Header                   http.Header
}

// Answer is what came back.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// Status is the part of an error body that the bodies check.
type Status struct {
	Kind, Reason, Message string
	Code                  int
	Details               struct {
		Causes []struct{ Field, Reason string }
	}
}

// Do sends one request.
func (c *Cluster) Do(ctx context.Context, r Request) (Answer, error) {
	response, err := c.Send(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(body)}, err
}

// Send sends one request and returns the response. The caller must close its body.
func (c *Cluster) Send(ctx context.Context, r Request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, c.URL+r.Path, bytes.NewReader([]byte(r.Body)))
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if r.Body != "" && r.Type == "" {
		r.Type = "application/json"
	}
	if r.Type != "" {
		request.Header.Set("Content-Type", r.Type)
	}
	return c.http.Do(request)
}

// Ask sends one request and fails the test when no answer comes.
func (c *Cluster) Ask(t *testing.T, r Request) Answer {
	t.Helper()
	answer, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Decode reads the body into a value.
func (a Answer) Decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), into); err != nil {
		t.Fatalf("%v in %.300s", err, a.Body)
	}
}

// WithoutConnections returns the cluster with connections of its own, none of which is open yet.
func (c *Cluster) WithoutConnections() *Cluster {
	as := *c
	transport := c.http.Transport.(*http.Transport).Clone()
	as.http = &http.Client{Transport: transport}
	return &as
}

// CloseConnections closes the connections that are not in use.
func (c *Cluster) CloseConnections() { c.http.CloseIdleConnections() }
