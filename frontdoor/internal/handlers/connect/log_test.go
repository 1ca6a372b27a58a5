package connect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestLogRequests: the logs of a pod never show the pod, and bad parameters are named.
func TestLogRequests(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.RequestURI()) })
	b.pod("one", `,"spec":{"containers":[{"name":"a","image":"secret"}]}`)
	b.pod("two", `,"spec":{"containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"}],"ephemeralContainers":[{"name":"e"}]}`)
	b.pod("lost", `,"spec":{"nodeName":"none","containers":[{"name":"a"}]}`)
	for _, c := range []struct {
		path string
		code int
		body string
	}{
		{"one/log", http.StatusNoContent, ""},
		{"one/log?container=a&follow=true&tailLines=0&limitBytes=1&sinceSeconds=1", http.StatusNoContent, ""},
		{"two/log?container=i", http.StatusNoContent, ""},
		{"two/log?container=e", http.StatusNoContent, ""},
		{"one/log?container=b", 400, "container b is not valid for pod one"},
		{"two/log", 400, "a container name must be specified for pod two, choose one of: [a b] or one of the init containers: [i]"},
		{"placed/log", 200, "/containerLogs/default/placed/a"},
		{"placed/log?follow=1&previous=true&timestamps=true&tailLines=5&limitBytes=7&sinceSeconds=9&other=1", 200,
			"/containerLogs/default/placed/a?follow=true&limitBytes=7&previous=true&sinceSeconds=9&tailLines=5&timestamps=true"},
		{"placed/log?sinceTime=2030-01-02T03:04:05Z", 200, "/containerLogs/default/placed/a?sinceTime=2030-01-02T03%3A04%3A05Z"},
		{"lost/log", 404, `nodes "none" not found`},
		{"none/log", 404, `pods "none" not found`},
		{"one/log?tailLines=-1", 422, `PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`},
		{"one/log?limitBytes=0", 422, `PodLogOptions "one" is invalid: limitBytes: Invalid value: 0: must be greater than 0`},
		{"one/log?sinceTime=x", 422, `PodLogOptions "one" is invalid: sinceTime: Invalid value: "x": must be an RFC 3339 time`},
		{"one/log?sinceTime=2030-01-02T03:04:05Z&sinceSeconds=5", 422,
			"PodLogOptions \"one\" is invalid: sinceSeconds: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"},
	} {
		if code, body := b.ask(http.MethodGet, "pods/"+c.path, nil); code != c.code || body != c.body {
			t.Errorf("%s: got %d %q, want %d %q", c.path, code, body, c.code, c.body)
		}
	}
}

// TestErrorsOfNodes: an error of a node is shown as such, and a redirect is not followed.
func TestErrorsOfNodes(t *testing.T) {
	reply := func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.URL.Query().Get("tailLines"), &code)
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.Repeat("no ", 100_000))
	}
	b := newBench(t, reply)
	for given, want := range map[int]int{302: 502, 400: 400, 404: 404, 500: 500, 503: 503, 204: 200} {
		code, body := b.ask(http.MethodGet, fmt.Sprint("pods/placed/log?tailLines=", given), nil)
		if code != want || len(body) > maxLogError+1000 || code != 200 && !strings.Contains(body, "no no") && given != 302 {
			t.Errorf("%d of the node: got %d %.200s", given, code, body)
		}
	}
}

// TestNodesAway: a node that does not answer, or is not whom its address names, is a 500
// that says so.
func TestNodesAway(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	b.placeNode("away", closedPort(t))
	b.pod("away", `,"spec":{"nodeName":"away","containers":[{"name":"a"}]}`)
	for path, want := range map[string]string{
		"pods/away/log":  "connect: connection refused",
		"pods/away/exec": "error dialing backend: dial tcp",
	} {
		header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}
		if code, body := b.ask(http.MethodGet, path+"?stdout=1", header); code != 500 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
}

// TestFollowedLogs: what a container writes is sent at once, and closing the handlers
// completes the response.
func TestFollowedLogs(t *testing.T) {
	next := make(chan string)
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case line := <-next:
				_, _ = io.WriteString(w, line)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.front.URL+"/api/v1/namespaces/default/pods/placed/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan *http.Response, 1)
	go func() {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
		}
		answers <- response
	}()
	next <- "one\n"
	response := <-answers
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for _, want := range []string{"one\n", "two\n"} {
		if line, err := lines.ReadString('\n'); err != nil || line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		if want == "one\n" {
			next <- "two\n"
		}
	}
	if b.handlers.Open() != 1 {
		t.Errorf("%d connections are open, want 1", b.handlers.Open())
	}
	b.handlers.Close(t.Context())
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the log ended with %q, %v", rest, err)
	}
	if code, body := b.ask(http.MethodGet, "pods/placed/log", nil); code != 503 {
		t.Errorf("a request after closing: got %d %s", code, body)
	}
}
