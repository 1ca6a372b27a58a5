package extensions

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// echo answers with what an extension sees of a request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	http.SetCookie(w, &http.Cookie{Name: "a", Value: "secret"})
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
	_, _ = fmt.Fprintf(w, "%s %s %s %v", r.Method, r.URL.RequestURI(), body, r.Header)
}

// TestRequestsReachTheExtension: a request reaches the extension as it is, in the name of
// its user, and without anything that names another one.
func TestRequestsReachTheExtension(t *testing.T) {
	b := newBench(t, echo)
	b.register("v1", "ext.example.com", nil)
	if c := b.check("v1", "ext.example.com"); c != passed {
		t.Fatal(c)
	}
	header := http.Header{"X-Kept": {"kept"}, "Connection": {"X-Remote-User, x-remote-group", "X-Remote-Extra-Example.com%2fx"}, "X-Remote-User": {"secret"}, "X-Remote-Uid": {"secret"}, "X-Remote-Group": {"secret"}, "X-Remote-Extra-A": {"secret"},
		"X-First-User": {"secret"}, "X-Ex-Scope": {"secret"}, "Authorization": {"secret"}, "Cookie": {"a=secret"}, "Impersonate-User": {"secret"},
		"X_Remote_User": {"secret"}, "X_first-User": {"secret"}, "X-Original-Url": {"secret"}, "X-Forwarded-User": {"secret"}, "X-Http-Method-Override": {"secret"}}
	for path, want := range map[string]string{
		"/apis/ext.example.com/v1/widgets?limit=5&b=%20c":          "POST /apis/ext.example.com/v1/widgets?b=+c&limit=5 the body",
		"/apis/ext.example.com/v1/namespaces/n/widgets/w/proxy/a/": "POST /apis/ext.example.com/v1/namespaces/n/widgets/w/proxy/a/ the body",
	} {
		response, got := b.ask(http.MethodPost, path, header, "the body")
		if response.StatusCode != 200 || !strings.HasPrefix(got, want) || strings.Contains(got, "secret") || !strings.Contains(got, "X-Kept:[kept]") ||
			response.Header.Get("Set-Cookie") != "" || response.Header.Get("Access-Control-Allow-Origin") != "" || response.Header.Get("Content-Security-Policy") != "sandbox" ||
			response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %s %v", path, response.StatusCode, got, response.Header)
		}
		if date := response.Header.Get("Date"); date == "" || strings.Contains(date, "1970") {
			t.Errorf("%s: the time of the response is %q", path, date)
		}
		for _, want := range []string{"X-Remote-User:[jane]", "X-Remote-Group:[a b]", "X-Remote-Extra-Example.com%2fx:[1 2]"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", path, got, want)
			}
		}
		if strings.Contains(got, "X-Remote-Uid") {
			t.Errorf("the uid crosses: %s", got)
		}
	}
	if response, got := b.ask(http.MethodGet, "/apis/ext.example.com/v1", nil, ""); response.StatusCode != 200 || !strings.HasPrefix(got, "GET /apis/ext.example.com/v1 ") {
		t.Errorf("the group version: got %d %s", response.StatusCode, got)
	}
}

// TestUsersWhomHeadersCannotName: nothing is sent in the name of users who would be others for the
// extension, which trims white space of headers, or whose line breaks would be replaced.
func TestUsersWhomHeadersCannotName(t *testing.T) {
	var requests atomic.Int32
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Remote-User") != "" {
			requests.Add(1)
		}
		echo(w, r)
	})
	b.register("v1", "ext.example.com", nil)
	if c := b.check("v1", "ext.example.com"); c != passed {
		t.Fatal(c)
	}
	const path = "/apis/ext.example.com/v1/widgets"
	before := requests.Load()
	for what, user := range map[string]services.UserInfo{
		"name": {Name: "admin ", Groups: []string{"a"}}, "name in lines": {Name: "a\nb"}, "group": {Name: "jane", Groups: []string{"a", "system:masters "}},
		"group after a tab": {Name: "jane", Groups: []string{"\tsystem:masters"}}, "group of two lines": {Name: "jane", Groups: []string{"a\r\nX-Remote-Group: b"}},
		"extra": {Name: "jane", Extra: map[string][]string{"scopes": {"a", " b"}}},
	} {
		b.user = user
		for kind, header := range map[string]http.Header{"request": nil, "upgrade": {"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}} {
			if response, got := b.ask(http.MethodGet, path, header, ""); response.StatusCode != http.StatusForbidden || !strings.Contains(got, "not forwarded") {
				t.Errorf("%s, %s: got %d %s", what, kind, response.StatusCode, got)
			}
		}
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests have reached the extension", n)
	}
	b.user = services.UserInfo{Name: "Jane Doe", Groups: []string{"two words", "größer"}}
	if response, got := b.ask(http.MethodGet, path, nil, ""); response.StatusCode != http.StatusOK || !strings.Contains(got, "X-Remote-Group:[two words größer]") {
		t.Errorf("words: got %d %s", response.StatusCode, got)
	}
}

// TestPathsThatDoNotReachTheExtension: a path that authorization understands in another way
// than a server might is not handed on, nor is one outside the group version.
func TestPathsThatDoNotReachTheExtension(t *testing.T) {
	b := newBench(t, echo)
	b.register("v1", "ext.example.com", nil)
	b.check("v1", "ext.example.com")
	const base = "/apis/ext.example.com/v1"
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", base + "//widgets", 404},
		{"GET", base + "/namespaces//widgets", 404},
		{"GET", base + "/%2Fwidgets", 400},
		{"GET", base + "/namespaces/n%2Fsecrets", 400},
		{"GET", base + "/namespaces/n/widgets/%2e%2e", 400},
		{"GET", base + "/../../ext.example.com/v1/widgets/x", 400},
		{"GET", base + "/widgets/w/proxy/../../x", 400},
		{"GET", base + "/widgets/w/proxy/%2e%2e/x", 400},
		{"GET", base + "/widgets/a%25b", 400},
		{"POST", base, 405},
		{"OPTIONS", base + "/widgets", 405},
		{"GET", "/apis/ext.example.com", 404},
		{"GET", "/apis/ext.example.com/v2/widgets", 404},
		{"GET", "/apis/other.example.com/v1", 404},
	} {
		response, got := b.ask(c.method, c.path, nil, "")
		if response.StatusCode != c.want || strings.Contains(got, "X-Remote-User") {
			t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, response.StatusCode, got, c.want)
		}
	}
}

// TestBuiltInVersionsStay: an APIService that claims a built-in group version gets no
// request for it.
func TestBuiltInVersionsStay(t *testing.T) {
	b := newBench(t, echo)
	b.register("v1", "apps", nil)
	if c := b.check("v1", "apps"); c.status != "False" || c.reason != "BuiltIn" {
		t.Errorf("got %v", c)
	}
	for _, path := range []string{"/apis/apps/v1", "/apis/apps/v1/namespaces/n/deployments"} {
		if _, got := b.ask(http.MethodGet, path, nil, ""); strings.Contains(got, "X-Remote-User") {
			t.Errorf("%s was handed on: %s", path, got)
		}
	}
}

// TestFailingExtensions: what a failing extension does becomes an error of that request.
func TestFailingExtensions(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("do") {
		case "redirect":
			http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
		case "hang":
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		case "drop":
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		case "headers":
			w.Header().Set("X-Large", strings.Repeat("a", 1<<17))
		case "status":
			w.WriteHeader(799)
		}
	})
	b.timeout = 2 * time.Second
	b.register("v1", "ext.example.com", nil)
	if response, got := b.ask("GET", "/apis/ext.example.com/v1/widgets", nil, ""); response.StatusCode != 503 {
		t.Errorf("before the first check: got %d %s", response.StatusCode, got)
	}
	b.check("v1", "ext.example.com")
	for do, want := range map[string]int{"": 200, "redirect": 502, "hang": 504, "drop": 503, "headers": 503, "status": 502} {
		response, got := b.ask("GET", "/apis/ext.example.com/v1/widgets?do="+do, nil, "")
		if response.StatusCode != want || response.Header.Get("Location") != "" {
			t.Errorf("%s: got %d %s %v, want %d", do, response.StatusCode, got, response.Header, want)
		}
	}
	b.extension.Close()
	if response, got := b.ask("GET", "/apis/ext.example.com/v1/widgets", nil, ""); response.StatusCode != 503 {
		t.Errorf("of an extension that has gone: got %d %s", response.StatusCode, got)
	}
}

// TestStreamsAndUpgrades: a watch is streamed while it goes on, and an upgraded connection
// is connected in both directions.
func TestStreamsAndUpgrades(t *testing.T) {
	next := make(chan string)
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, buffered, _ := http.NewResponseController(w).Hijack()
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-User: %s\r\nSet-Cookie: a=b\r\n\r\n", r.Header.Get("X-Remote-User"))
			line, _ := buffered.ReadString('\n')
			_, _ = io.WriteString(conn, "echo "+line)
			return
		}
		for event := range next {
			_, _ = fmt.Fprintln(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	})
	b.register("v1", "ext.example.com", nil)
	b.timeout = 100 * time.Millisecond
	b.available("v1", "ext.example.com")
	t.Run("upgrade", func(t *testing.T) {
		conn, err := net.Dial("tcp", b.front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "GET /apis/ext.example.com/v1/widgets/w/exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Remote-User: root\r\n\r\n")
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil || response.StatusCode != 101 || response.Header.Get("X-User") != "jane" || response.Header.Get("Set-Cookie") != "" {
			t.Fatalf("got %v, %v", response, err)
		}
		<-time.After(2 * b.timeout) // longer than other requests may take
		_, _ = io.WriteString(conn, "hello\n")
		if line, err := reader.ReadString('\n'); line != "echo hello\n" {
			t.Errorf("got %q, %v", line, err)
		}
	})
	t.Run("watch", func(t *testing.T) {
		go func() { next <- "event 0" }() // the response begins with it
		response, err := http.Get(b.front.URL + "/apis/ext.example.com/v1/widgets?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		for i := range 3 {
			want := fmt.Sprintf("event %d", i)
			if i > 0 {
				next <- want
			}
			if line, err := lines.ReadString('\n'); line != want+"\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			<-time.After(b.timeout)
		}
		close(next)
		if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
	})
}

// TestEndpoints: with routing to endpoints, requests go to a ready endpoint with the port of
// the service, which need not have a cluster IP.
func TestEndpoints(t *testing.T) {
	b := newBench(t, echo)
	b.handlers.Services.Endpoints = true
	b.keep(resource.GroupResource{Resource: "services"}, "ns", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"ext","namespace":"ns","uid":"s"},
		"spec":{"type":"ClusterIP","clusterIP":"None","ports":[{"name":"https","port":443}]}}`)
	b.register("v1", "ext.example.com", func(spec map[string]any) { delete(spec["service"].(map[string]any), "port") })
	if c := b.check("v1", "ext.example.com"); c != passed {
		t.Fatal(c)
	}
	if response, got := b.ask(http.MethodGet, "/apis/ext.example.com/v1/widgets", nil, ""); response.StatusCode != 200 {
		t.Errorf("got %d %s", response.StatusCode, got)
	}
	b.handlers.Services.Endpoints = false
	if response, got := b.ask(http.MethodGet, "/apis/ext.example.com/v1/widgets", nil, ""); response.StatusCode != 503 {
		t.Errorf("without a cluster IP: got %d %s", response.StatusCode, got)
	}
}
