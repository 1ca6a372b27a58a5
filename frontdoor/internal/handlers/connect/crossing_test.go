package connect

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/crossing"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
)

// hostile are headers of a response with which a backend would speak for the origin of the API, or
// for the front door, and kept are those that cross.
var (
	hostile = []string{"Set-Cookie: a=evil", "Set-Cookie2: evil", "Service-Worker-Allowed: /evil", "Clear-Site-Data: \"evil\"", "Strict-Transport-Security: evil",
		"Content-Security-Policy: evil", "Content-Security-Policy-Report-Only: evil", "X-Content-Security-Policy: evil", "Alt-Svc: evil", "Refresh: 0;evil", "Audit-Id: evil",
		"Www-Authenticate: evil", "Proxy-Authenticate: evil", "Access-Control-Allow-Origin: evil", "Timing-Allow-Origin: evil", "X-Content-Type-Options: evil",
		"X-Accel-Redirect: /evil", "X_Accel_Redirect: /evil", "Cross-Origin-Opener-Policy: evil", "Permissions-Policy: evil", "Nel: evil", "Report-To: evil", "Sourcemap: evil",
		"Date: evil", "Location-Evil: evil", "Warning: 299 - \"evil\""}
	kept = []string{"Content-Type: text/evil", "Cache-Control: max-age=5", "Etag: \"e\"", "X-Total-Count: 5", "X-Stream-Protocol-Version: v4.channel.k8s.io", "Retry-After: 7", "Content-Disposition: inline"}
)

// checkHeaders reports which headers of a response should not be there, or are missing.
func checkHeaders(t *testing.T, what string, h http.Header) {
	t.Helper()
	for name, values := range h {
		if name != "Content-Type" && strings.Contains(strings.Join(values, ","), "evil") {
			t.Errorf("%s: %s: %v crosses", what, name, values)
		}
	}
	for _, line := range kept {
		name, value, _ := strings.Cut(line, ": ")
		if got := h[textproto.CanonicalMIMEHeaderKey(name)]; len(got) != 1 || got[0] != value {
			t.Errorf("%s: %s is %v", what, name, got)
		}
	}
	for name, want := range map[string]string{"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff", "Audit-Id": "own", "Strict-Transport-Security": "own"} {
		if got := h[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s is %v, not %q", what, name, got, want)
		}
	}
}

// TestHeadersOfResponses: a backend sets no header with an effect beyond its own response, whatever
// it answers: after an informational response, to an upgrade, or when it refuses one. The headers of
// the front door stay.
func TestHeadersOfResponses(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		lines := strings.Join(append(append([]string{}, hostile...), kept...), "\r\n")
		early := "HTTP/1.1 103 Early Hints\r\nLink: </evil>\r\nAudit-Id: evil\r\nSet-Cookie: evil\r\n\r\n"
		switch {
		case r.Header.Get("Upgrade") == "":
			_, _ = fmt.Fprintf(conn, "%sHTTP/1.1 200 OK\r\n%s\r\nConnection: close\r\nTrailer: Set-Cookie, Grpc-Status\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSet-Cookie: evil\r\nGrpc-Status: 5\r\n\r\n", early, lines)
		case strings.Contains(r.URL.RawQuery, "refuse"):
			_, _ = fmt.Fprintf(conn, "%sHTTP/1.1 403 Forbidden\r\n%s\r\nContent-Length: 2\r\n\r\nno", early, lines)
		default:
			_, _ = fmt.Fprintf(conn, "%sHTTP/1.1 101 Switching Protocols\r\n%s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: x\r\n\r\nframes", early, lines, r.Header.Get("Upgrade"))
		}
	}
	b := newBench(t, answer)
	b.backendAt("web", answer)
	b.own = http.Header{"Audit-Id": {"own"}, "Strict-Transport-Security": {"own"}, "Cache-Control": {"no-cache, private"}}
	for _, path := range []string{"/nodes/n/proxy/x", "/namespaces/default/pods/web/proxy/x", "/namespaces/default/services/web/proxy/x"} {
		response, err := http.Get(b.front.URL + "/api/v1" + path) //nolint:noctx // ends with the server
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != "ok" || err != nil {
			t.Fatalf("%s: %q, %v", path, body, err)
		}
		checkHeaders(t, path, response.Header)
		if got := response.Trailer; got.Get("Grpc-Status") != "5" || len(got) != 1 {
			t.Errorf("%s: trailers %v", path, got)
		}
		for query, want := range map[string]string{"": "101 frames", "?refuse": "403 no"} {
			conn, reader, header := b.openFor(path+query, "Upgrade: websocket")
			rest, _ := io.ReadAll(reader)
			_ = conn.Close()
			if got := header.Get(":status") + " " + string(rest); got != want {
				t.Fatalf("%s%s: got %q, want %q", path, query, got, want)
			}
			header.Del(":status")
			checkHeaders(t, path+query, header)
			if query == "" && (header.Get("Upgrade") != "websocket" || header.Get("Sec-WebSocket-Accept") != "x") {
				t.Errorf("%s: %v", path, header)
			}
		}
	}
}

// TestSealedLogs: the log of a pod is no page of the origin of the API.
func TestSealedLogs(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<script>")
	})
	response, err := http.Get(b.front.URL + "/api/v1/namespaces/default/pods/placed/log") //nolint:noctx // ends with the server
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for name, want := range map[string]string{"Content-Type": "text/plain", "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff"} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestAnswersOfFrontDoors: what another front door answers is not sealed, unless it is the content of a
// backend.
func TestAnswersOfFrontDoors(t *testing.T) {
	for path, want := range map[string]string{"/api/v1/namespaces/a/pods/b": "", "/api/v1/namespaces/a/pods/b/proxy/x": "sandbox", "/api/v1/nodes/b/proxy/x": "sandbox"} {
		r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)}
		if _, err := r.Identify(handlertest.Engine(t)); err != nil {
			t.Fatal(err)
		}
		r.Extend(nil, nil)
		own := http.Header{}
		Extension{Plain: true}.answers(r).Response(own, http.Header{"Audit-Id": {"a"}, "Set-Cookie": {"a"}})
		if own.Get("Content-Security-Policy") != want || own.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", path, own)
		}
	}
}

// TestForgedRequestHeaders: no spelling of a header by which a server would take the client for
// somebody else, or the request for another one, reaches a backend.
func TestForgedRequestHeaders(t *testing.T) {
	for _, name := range []string{"X_Remote_User", "x-remote_user", "X-Remote-Extra-A", "X.Remote.Group", "Remote_User", "X-Original-Url", "X_ORIGINAL_URI", "X-Rewrite-Url",
		"X-Forwarded-User", "X_Forwarded_Access_Token", "X-Forwarded-Host", "Forwarded", "X-Http-Method-Override", "X_HTTP_METHOD_OVERRIDE", "X-Auth-Request-User", "X-Webauth-User",
		"X-SSL-Client-Cert", "SSL_CLIENT_S_DN", "X-Real-IP", "Proxy", "Impersonate_User", "Authorization", "X_Name_Of_Mine"} {
		for _, as := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			h := http.Header{as: {"evil"}, "X-Kept": {"kept"}, "X-Remotely": {"kept"}}
			if got := crossing.Request(h, "X-Name-Of-"); len(got) != 2 {
				t.Errorf("%s crosses: %v", as, got)
			}
		}
	}
}
