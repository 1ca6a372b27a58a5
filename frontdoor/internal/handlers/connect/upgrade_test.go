package connect

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// echo upgrades a connection and sends back what comes, after the request line and the
// headers that it has seen.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n%s\n%v\n", r.Header.Get("Upgrade"), r.URL.RequestURI(), r.Header)
	_, _ = io.Copy(conn, buffered)
}

// open sends a request for an upgrade and returns the connection after the header of the
// response, with its status.
func (b *bench) open(path string, headers ...string) (net.Conn, *bufio.Reader, int) {
	b.Helper()
	conn, reader, header := b.openFor(path, headers...)
	status, err := strconv.Atoi(header.Get(":status"))
	if err != nil {
		b.Fatal(err)
	}
	return conn, reader, status
}

// openFor is open with the header of the response, which has its status as :status.
func (b *bench) openFor(path string, headers ...string) (net.Conn, *bufio.Reader, http.Header) {
	b.Helper()
	conn, err := net.Dial("tcp", b.front.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if !strings.HasPrefix(path, "/") {
		path = "/namespaces/default/" + path
	}
	lines := append([]string{"GET /api/v1" + path + " HTTP/1.1", "Host: front", "Connection: Upgrade"}, headers...)
	_, _ = io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		b.Fatal(err)
	}
	response.Header.Set(":status", strconv.Itoa(response.StatusCode))
	return conn, reader, response.Header
}

// TestUpgrades: exec, attach and port forwarding reach the node with the options that
// are valid, in both directions, and without credentials of the client.
func TestUpgrades(t *testing.T) {
	b := newBench(t, echo)
	b.pod("two", `,"spec":{"nodeName":"n","containers":[{"name":"a"},{"name":"b"}]}`)
	for path, want := range map[string]string{
		"pods/placed/exec?command=ls&command=-l%20x&stdout=1&stderr=true&stdin=false": "/exec/default/placed/a?command=ls&command=-l+x&error=1&output=1",
		"pods/two/exec?container=b&command=sh&stdin=1&stdout=1&stderr=1&tty=1":        "/exec/default/two/b?command=sh&input=1&output=1&tty=1",
		"pods/placed/attach?stdin=1":          "/attach/default/placed/a?input=1",
		"pods/placed/portforward?ports=80,81": "/portForward/default/placed?port=80%2C81",
		"pods/placed/portforward":             "/portForward/default/placed",
		"/nodes/n/proxy/run?x=1%202&y=%2e%2e": "/run?x=1%202&y=%2e%2e",
	} {
		conn, reader, status := b.open(path, "Upgrade: SPDY/3.1", "Authorization: Bearer secret", "Cookie: a=secret", "X-Remote-User: secret",
			"Impersonate-User: secret", "X-Hop: secret", "Connection: X-Hop", "Sec-WebSocket-Protocol: v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.secret",
			"X-Stream-Protocol-Version: v4.channel.k8s.io")
		if status != http.StatusSwitchingProtocols {
			rest, _ := io.ReadAll(reader)
			t.Fatalf("%s: %d %s", path, status, rest)
		}
		line, _ := reader.ReadString('\n')
		headers, _ := reader.ReadString('\n')
		if line != want+"\n" || strings.Contains(headers, "secret") || !strings.Contains(headers, "Sec-Websocket-Protocol:[v4.channel.k8s.io]") ||
			!strings.Contains(headers, "X-Stream-Protocol-Version:[v4.channel.k8s.io]") {
			t.Errorf("%s: the node saw %s%s", path, line, headers)
		}
		_, _ = io.WriteString(conn, "hello\n")
		if got, err := reader.ReadString('\n'); got != "hello\n" {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, status := range b.stages {
		if status != http.StatusSwitchingProtocols {
			t.Errorf("the responses began with %v", b.stages)
		}
	}
}

// TestRefusedUpgrades: what cannot be connected is an error that says why.
func TestRefusedUpgrades(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("command") {
		case "redirect":
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		case "long":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusForbidden)
		case "mute":
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "the node says no", http.StatusForbidden)
		}
	})
	b.pod("waiting", `,"spec":{"containers":[{"name":"a"}]}`)
	b.pod("two", `,"spec":{"nodeName":"n","containers":[{"name":"a"},{"name":"b"}]}`)
	for path, want := range map[string]string{
		"pods/waiting/exec?stdout=1":                 "400 pod waiting does not have a host assigned",
		"pods/waiting/exec":                          "400 pod waiting does not have a host assigned",
		"pods/placed/exec":                           "400 you must specify at least 1 of stdin, stdout, stderr",
		"pods/placed/attach?tty=1&stderr=1":          "400 you must specify at least 1 of stdin, stdout, stderr",
		"pods/two/exec?stdout=1":                     "400 a container name must be specified for pod two",
		"pods/placed/exec?stdout=1&container=b":      "400 container b is not valid for pod placed",
		"pods/placed/exec/more?stdout=1":             "404 the server could not find",
		"pods/placed/exec?stdout=1&dryRun=All":       "400 dryRun is not supported",
		"pods/none/exec?stdout=1":                    "404 pods \"none\" not found",
		"pods/placed/portforward?ports=x":            "400 ports: \"x\" is not a port number",
		"pods/placed/exec?stdout=1&command=no":       "403 the node says no",
		"pods/placed/exec?stdout=1&command=redirect": "500 invalid upgrade response: status code 302",
		"pods/placed/exec?stdout=1&command=long":     "500 ",
		"pods/placed/exec?stdout=1&command=mute":     "500 ",
	} {
		_, reader, status := b.open(path, "Upgrade: SPDY/3.1", "Connection: close")
		rest, _ := io.ReadAll(reader)
		if got := fmt.Sprint(status, " ", string(rest)); !strings.Contains(strings.ReplaceAll(got, "\r\n", " "), strings.TrimSpace(want[4:])) || !strings.HasPrefix(got, want[:3]) {
			t.Errorf("%s: got %.300s, want %s", path, got, want)
		}
	}
	if code, body := b.ask(http.MethodPost, "pods/placed/exec?stdout=1", nil); code != 400 || body != "Upgrade request required" {
		t.Errorf("without an upgrade: got %d %s", code, body)
	}
	if code, _ := b.ask(http.MethodPut, "pods/placed/exec?stdout=1", nil); code != 405 {
		t.Errorf("PUT: got %d", code)
	}
}

// TestAdmittedOptions: admission sees the options, and what it changes counts.
func TestAdmittedOptions(t *testing.T) {
	b := newBench(t, echo)
	b.handlers.Admission = admission{change: func(given []byte) []byte {
		return []byte(strings.ReplaceAll(string(given), `"rm"`, `"echo"`))
	}}
	_, reader, status := b.open("pods/placed/exec?command=rm&stdout=1", "Upgrade: SPDY/3.1")
	if line, _ := reader.ReadString('\n'); status != 101 || line != "/exec/default/placed/a?command=echo&output=1\n" {
		t.Errorf("got %d %s", status, line)
	}
	b.handlers.Admission = admission{change: func([]byte) []byte { return []byte(`{"command":5}`) }}
	if code, body := b.ask(http.MethodGet, "pods/placed/exec?stdout=1", nil); code != 400 || !strings.Contains(body, "admission has changed") {
		t.Errorf("got %d %s", code, body)
	}
}

// TestEndsOfConnections: a connection ends with its client, at the end of its lifetime,
// and when the handlers are closed, and none is left.
func TestEndsOfConnections(t *testing.T) {
	ended := make(chan struct{}, 1)
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		echo(w, r)
		ended <- struct{}{}
	})
	for name, end := range map[string]func(net.Conn){
		"client":   func(c net.Conn) { _ = c.Close() },
		"lifetime": func(net.Conn) {},
		"close":    func(net.Conn) { b.handlers.Close(t.Context()) },
	} {
		b.handlers.open = sessions{}
		b.handlers.Lifetime = time.Minute
		if name == "lifetime" {
			b.handlers.Lifetime = 3 * time.Second
		}
		conn, reader, status := b.open("pods/placed/attach?stdin=1", "Upgrade: SPDY/3.1")
		if status != 101 {
			t.Fatalf("%s: %d", name, status)
		}
		end(conn)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the connection to the node stays", name)
		}
		if name != "client" {
			if _, err := io.ReadAll(reader); err != nil {
				t.Errorf("%s: the connection of the client ended with %v", name, err)
			}
		}
		b.handlers.Close(t.Context())
		if n := b.handlers.Open(); n != 0 {
			t.Errorf("%s: %d connections are left", name, n)
		}
	}
}

// TestFramesAtTheEnd: a client of WebSocket or SPDY is told that the connection ends when the
// front door stops, and not when it is the node that ends it.
func TestFramesAtTheEnd(t *testing.T) {
	for _, x := range []struct {
		upgrade, frame, last string
	}{
		{"websocket", "\x82\x02ab", "\x88\x1d\x03\xe9the server is shutting down"},
		{"SPDY/3.1", "\x00\x00\x00\x01\x00\x00\x00\x02ab", "\x80\x03\x00\x07\x00\x00\x00\x08\x7f\xff\xff\xff\x00\x00\x00\x00"},
	} {
		for _, stops := range []bool{true, false} {
			end := make(chan struct{})
			b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
				conn, buffered, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n%s", r.Header.Get("Upgrade"), x.frame)
				go func() { <-end; _ = conn.Close() }()
				_, _ = io.Copy(io.Discard, buffered)
			})
			_, reader, status := b.open("pods/placed/attach?stdin=1", "Upgrade: "+x.upgrade, "Sec-WebSocket-Protocol: v4.channel.k8s.io")
			frame := make([]byte, len(x.frame))
			if _, err := io.ReadFull(reader, frame); status != http.StatusSwitchingProtocols || err != nil || string(frame) != x.frame {
				t.Fatalf("%s: %d, %q, %v", x.upgrade, status, frame, err)
			}
			want := ""
			if stops {
				want = x.last
				b.handlers.Close(t.Context())
			}
			close(end)
			if rest, err := io.ReadAll(reader); err != nil || string(rest) != want {
				t.Errorf("%s, stops %v: the client got %q, %v, want %q", x.upgrade, stops, rest, err, want)
			}
		}
	}
}

// TestUncheckedAddresses: the address of a node is checked when it is dialled.
func TestUncheckedAddresses(t *testing.T) {
	b := newBench(t, echo)
	b.placeNode("linked", "https://169.254.169.254:80")
	b.pod("linked", `,"spec":{"nodeName":"linked","containers":[{"name":"a"}]}`)
	b.placeNode("nowhere", "https://[::1]:1")
	b.pod("nowhere", `,"spec":{"nodeName":"nowhere","containers":[{"name":"a"}]}`)
	for _, name := range []string{"linked", "nowhere"} {
		for _, path := range []string{"/log", "/exec?stdout=1", "/portforward"} {
			code, body := b.ask(http.MethodGet, "pods/"+name+path, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}})
			if code != 500 || !strings.Contains(body, "address not allowed") {
				t.Errorf("%s%s: got %d %s", name, path, code, body)
			}
		}
		if code, body, err := b.do(http.MethodGet, "/api/v1/nodes/"+name+"/proxy/", nil); code != 503 || !strings.Contains(body, "address not allowed") {
			t.Errorf("proxy of %s: got %d %s, %v", name, code, body, err)
		}
	}
}
