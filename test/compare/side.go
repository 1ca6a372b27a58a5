package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/internal/servers"
	"github.com/portico-platform/portico/test/compare/internal/corpus"
	"github.com/portico-platform/portico/test/compare/internal/normal"
	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// side is one of the two servers.
type side struct {
	server *servers.Server
	client *http.Client

	document   *openapi.Document
	discovered corpus.Discovered
}

// start starts a server, waits until it is ready and reads its OpenAPI and discovery
// documents. The result has to be stopped, also after an error.
func start(ctx context.Context, begin func() (*servers.Server, error)) (*side, error) {
	server, err := begin()
	s := &side{server: server, client: &http.Client{
		// The server is a child process of this program, on loopback.
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 8}, //nolint:gosec // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       time.Minute,
	}}
	if err != nil {
		return s, err
	}
	if err := s.await(ctx); err != nil {
		return s, fmt.Errorf("%s: %w", server.Name, err)
	}
	return s, s.discover(ctx)
}

func (s *side) stop() {
	if s != nil && s.server != nil {
		s.server.Stop()
	}
}

func (s *side) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, ready := s.read(ctx, "/readyz")
		_, found := s.read(ctx, "/api/v1/namespaces/default")
		if ready == nil && found == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %v, %v", startTimeout, ready, found)
		case <-ticker.C:
		}
	}
}

// read reads a document.
func (s *side) read(ctx context.Context, path string) ([]byte, error) {
	a, err := s.send(ctx, &corpus.Step{Method: http.MethodGet, Path: path}, nil)
	if err == nil && a.Code != http.StatusOK {
		err = fmt.Errorf("%s answers %d", path, a.Code)
	}
	return a.Body, err
}

// discover reads the types that the server serves.
func (s *side) discover(ctx context.Context) error {
	content, err := s.read(ctx, "/openapi/v2")
	if err != nil {
		return err
	}
	if s.document, err = openapi.Parse(content); err != nil {
		return err
	}
	if content, err = s.read(ctx, "/apis"); err != nil {
		return err
	}
	var list struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	paths := []string{"/api/v1"}
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+v.GroupVersion)
		}
	}
	s.discovered = corpus.Discovered{}
	for _, path := range paths {
		if s.discovered[path], err = s.read(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxBody bounds the size of a response body.
	maxBody = 16 << 20
	// attempts is the maximum number of attempts of a request.
	attempts = 4
)

// send sends a request and reads the complete response. It repeats the request if the server
// is overloaded and asks the client to retry.
func (s *side) send(ctx context.Context, step *corpus.Step, seen corpus.Seen) (answer normal.Answer, err error) {
	for range attempts {
		answer, err = s.sendOnce(ctx, step, seen)
		busy := answer.Code == http.StatusServiceUnavailable || answer.Code == http.StatusTooManyRequests
		if err != nil || !busy || answer.Header.Get("Retry-After") == "" {
			break
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return answer, err
}

func (s *side) sendOnce(ctx context.Context, step *corpus.Step, seen corpus.Seen) (normal.Answer, error) {
	url := s.server.URL + step.Path
	if step.Query != "" {
		url += "?" + step.Query
	}
	body := step.Content(seen)
	request, err := http.NewRequestWithContext(ctx, step.Method, url, bytes.NewReader(body))
	if err != nil {
		return normal.Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+servers.AdminToken)
	request.Header.Set("User-Agent", "compare/1")
	request.Header.Set("Accept", cmp.Or(step.Accept, "application/json"))
	if len(body) > 0 || step.Type != "" {
		request.Header.Set("Content-Type", cmp.Or(step.Type, "application/json"))
	}
	response, err := s.client.Do(request)
	if err != nil {
		return normal.Answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil && !strings.Contains(err.Error(), "EOF") {
		return normal.Answer{}, err
	}
	return normal.Answer{Code: response.StatusCode, Header: response.Header, Body: content}, nil
}
