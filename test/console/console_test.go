package console

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"sigs.k8s.io/yaml"
)

var screenshots = flag.String("screenshots", "", "folder for the screenshots of the tour; none are made if empty")

// shoot writes a screenshot of the tab.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	time.Sleep(300 * time.Millisecond) // transitions end
	var picture []byte
	b.run(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// text is the YAML that the page of an object shows.
const text = `document.querySelector('textarea').value`

// edit replaces a part of the YAML, as if it were typed.
func (b *tab) edit(from, to string) {
	b.t.Helper()
	b.run(chromedp.Poll(`!document.querySelector('textarea').readOnly`, nil))
	if !evaluate[bool](b, fmt.Sprintf(`(() => { const a = document.querySelector('textarea'); const t = a.value.replace(%q, %q); const ok = t !== a.value; a.value = t; a.dispatchEvent(new Event('input')); return ok; })()`, from, to)) {
		b.t.Fatalf("the YAML has no %q:\n%s", from, evaluate[string](b, text))
	}
}

func (b *tab) click(button string) {
	b.t.Helper()
	b.run(chromedp.Click(fmt.Sprintf(`//button[text()=%q and not(@disabled)]`, button), chromedp.BySearch))
}

// TestConsole: one user's way through the console, with a server and a browser that all its
// parts share.
func TestConsole(t *testing.T) {
	browser(t)
	p := start(t, "--emulated-version", "1.36")
	for name, part := range map[string]func(*testing.T, *portico){
		"login": login, "list": list, "edit": edit, "conflict": conflict, "history": history, "denied": denied,
		"yaml": yamlRoundTrip, "many rows": manyRows, "keys": keys, "narrow": narrow, "tour": tour,
		"watches": closeWatch, "verdicts": verdicts, "documents": documents,
		"paths": paths, "links": links, "columns": columns, "address": address, "away": away,
	} {
		t.Run(name, func(t *testing.T) { part(t, p) })
	}
}

// login: wrong credentials are refused with a reason, and logging out forgets the token.
func login(t *testing.T, p *portico) {
	b := open(t, p)
	b.allow("401")
	b.allow("403") // the anonymous user may not discover types
	b.run(chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", "wrong\n"))
	b.sees("not accepted")
	b.run(chromedp.Evaluate(`document.getElementById('token').value = ''`, nil))
	b.login(p.token)
	b.sees("admin")
	if stored := evaluate[string](b, `JSON.stringify(localStorage) + document.cookie`); strings.Contains(stored, p.token) {
		t.Error("the token outlives the tab")
	}
	b.run(chromedp.Reload())
	b.sees("Log out")
	b.run(chromedp.Click("#logout"), chromedp.WaitVisible("#token"))
	if kept := evaluate[int](b, `sessionStorage.length`); kept != 0 {
		t.Error("the session outlives the logout")
	}
	b.run(chromedp.Click("#certificate"))
	b.sees("not accepted")
}

// list: a list follows the objects as they change.
func list(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	p.must(t, http.MethodPost, configMaps, configMap("before", "1"))
	b.goTo("#/r/core/v1/configmaps?ns=default")
	b.sees("before")
	p.must(t, http.MethodPost, configMaps, configMap("during", "1"))
	b.sees("during")
	p.must(t, http.MethodPatch, configMaps+"/during", object{"data": object{"more": "1"}})
	b.run(chromedp.Poll(`[...document.querySelectorAll('.line')].some((l) => l.innerText.replace(/\s+/g, ' ').startsWith('during 2'))`, nil))
	p.must(t, http.MethodDelete, configMaps+"/before", nil)
	b.seesNot("before")
	b.run(chromedp.SendKeys("#filter", "no such"))
	b.seesNot("during")
}

// edit: a check changes nothing, a mistake is named, a save is stored.
func edit(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	p.must(t, http.MethodPost, configMaps, configMap("edited", "old"))
	b.goTo("#/o/core/v1/configmaps/default/edited")
	b.sees("Managed fields")
	b.edit("key: old", "key: new")
	b.click("Check")
	b.sees("would be accepted")
	b.sees("+   key: new")
	if stored := string(p.must(t, http.MethodGet, configMaps+"/edited", nil)); !strings.Contains(stored, "old") {
		t.Error("a check has changed the object")
	}
	b.allow("400")
	b.edit("data:", "dota:")
	b.click("Save")
	b.sees(`unknown field "dota"`)
	b.edit("dota:", "data:")
	b.click("Save")
	b.sees("Saved.")
	stored := string(p.must(t, http.MethodGet, configMaps+"/edited", nil))
	if !strings.Contains(stored, "new") || !strings.Contains(stored, `"manager": "console"`) && !strings.Contains(stored, `"manager":"console"`) {
		t.Errorf("after the save: %s", stored)
	}
	b.click("Managed fields")
	b.sees(".data.key")
}

// conflict: an edit of what somebody else has changed is refused, says what changed, and
// keeps the text.
func conflict(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	p.must(t, http.MethodPost, configMaps, configMap("contested", "first"))
	b.goTo("#/o/core/v1/configmaps/default/contested")
	b.sees("Managed fields")
	b.edit("key: first", "key: mine")
	p.must(t, http.MethodPatch, configMaps+"/contested", object{"data": object{"other": "theirs"}})
	b.sees("has changed since you started editing")
	b.allow("409")
	b.click("Save")
	b.sees("the object has been modified")
	b.sees("+   other: theirs")
	if !strings.Contains(evaluate[string](b, text), "key: mine") {
		t.Error("the user's text is lost")
	}
	b.click("Keep my text and overwrite the change")
	b.click("Save")
	b.sees("Saved.")
	if stored := string(p.must(t, http.MethodGet, configMaps+"/contested", nil)); !strings.Contains(stored, "mine") {
		t.Errorf("after the save: %s", stored)
	}
}

// history: revisions from before the page was opened can be compared.
func history(t *testing.T, p *portico) {
	b := open(t, p)
	b.allow("410")
	p.must(t, http.MethodPost, configMaps, configMap("old", "one"))
	p.must(t, http.MethodPatch, configMaps+"/old", object{"data": object{"key": "two"}})
	p.must(t, http.MethodPatch, configMaps+"/old", object{"data": object{"key": "three"}})
	b.login(p.token)
	b.goTo("#/o/core/v1/configmaps/default/old")
	b.sees("Managed fields")
	b.click("History")
	b.sees("-   key: two")
	b.sees("+   key: three")
	b.click("Delete")
	b.sees("Delete ConfigMap old?")
	b.run(chromedp.Click(`dialog button.danger`))
	b.sees("has been deleted")
}

// denied: a user sees what the API refuses, and cannot edit what they may only read.
func denied(t *testing.T, p *portico) {
	p.must(t, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "reader"}})
	p.must(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": object{"name": "reader"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
		"subjects": []object{{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}}})
	p.must(t, http.MethodPost, configMaps, configMap("readable", "1"))
	token := between(string(p.must(t, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/reader/token", object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})), `"token":"`, `"`)
	b := open(t, p)
	b.allow("403")
	b.login(token)
	b.goTo("#/r/core/v1/secrets")
	b.sees(`cannot list resource "secrets"`)
	b.goTo("#/r/core/v1/configmaps")
	b.sees("Choose a namespace in which you may list configmaps.")
	b.run(chromedp.SendKeys(`input[aria-label="Namespace"]`, "default\n"))
	b.sees("readable")
	b.goTo("#/o/core/v1/configmaps/default/readable")
	b.sees("You may not change this object.")
	if !evaluate[bool](b, `[...document.querySelectorAll('button')].find((e) => e.textContent === 'Delete').disabled`) {
		t.Error("the user may press Delete")
	}
	b.goTo("#/audit")
	b.sees("Not allowed")
}

// between returns what stands between two texts, without the spaces of pretty JSON.
func between(s, from, to string) string {
	_, rest, _ := strings.Cut(strings.ReplaceAll(s, `": "`, `":"`), from)
	found, _, _ := strings.Cut(rest, to)
	return found
}

// yamlRoundTrip: the YAML of the page is read as the object that it stands for.
func yamlRoundTrip(t *testing.T, p *portico) {
	b := open(t, p)
	values := []any{"", " ", "x", "a: b", "a:b", "key:", "- x", "# x", "a #b", "yes", "No", "null", "~", "1", "1e3", "0x1f", ".5", "2026-01-01", "12:30:45", "=", "<<",
		"line\nline\n", "line\nline", "\nline", "  x\ny\n", "x \ny\n", "x\n\n", "x\n\ny\n", "tab\tx", "quote\"s'", "é\u0085\u2028\ufeff😀", "*a", "&a", "!t", "%d", "@x", "`x", "{a}", "[a]", "a, b", "x:\ny",
		true, false, nil, 1.5, -3.0, 0.0, []any{}, map[string]any{}, []any{[]any{1.0, []any{}}, map[string]any{"a": []any{map[string]any{"b": "c\nd\n"}}}}}
	for _, value := range values {
		for _, o := range []any{map[string]any{"a: b": value}, map[string]any{"k": []any{value, value}}, map[string]any{"k": map[string]any{"n": value, "o": "x"}}} {
			encoded, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var text string
			b.run(chromedp.Evaluate(fmt.Sprintf(`import('./js/yaml.js').then((m) => m.toYAML(%s))`, encoded), &text, awaited))
			var read any
			if err := yaml.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, o) {
				t.Errorf("%s became %q, which is %v (%v)", encoded, text, read, err)
			}
		}
	}
}

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// manyRows: 10,000 rows are read in chunks, few of them are elements, and scrolling shows
// the last one.
func manyRows(t *testing.T, p *portico) {
	const rows, writers = 10_000, 16
	p.must(t, http.MethodPost, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "many"}})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := w; i < rows; i += writers {
				if _, err := p.do(t.Context(), http.MethodPost, "/api/v1/namespaces/many/configmaps", configMap(fmt.Sprintf("row-%05d", i), "1")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	b := open(t, p)
	b.login(p.token)
	b.goTo("#/r/core/v1/configmaps?ns=many")
	b.sees("10001") // with the root certificate
	b.run(chromedp.Evaluate(`document.querySelector('.grid').scrollTop = 1e9`, nil))
	b.sees("row-09999")
	if n := evaluate[int](b, `document.querySelectorAll('.line').length`); n > 100 {
		t.Errorf("%d rows are elements", n)
	}
	b.run(chromedp.SendKeys("#filter", "row-0123"))
	b.sees("10 of 10001")
}

// keys: the console can be used without a mouse.
func keys(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	b.run(chromedp.KeyEvent("ga"))
	b.sees("ValidatingWebhookConfiguration")
	b.run(chromedp.KeyEvent("?"))
	b.sees("next and previous row")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.seesNot("next and previous row")
	b.run(chromedp.KeyEvent("y"), chromedp.Poll(`document.activeElement.id === 'types'`, nil), chromedp.Evaluate(`document.activeElement.value = ''`, nil), // the driver types y into the field too
		chromedp.SendKeys("#types", "namespaces"+kb.Enter))
	b.sees("kube-system")
	b.run(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.sees("Managed fields")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.sees("kube-system")
	b.run(chromedp.KeyEvent("t"))
	if evaluate[string](b, `document.documentElement.dataset.theme`) == "" {
		t.Error("t does not change the theme")
	}
	for _, unlabelled := range evaluate[[]string](b, `[...document.querySelectorAll('input, select, textarea, button')].filter((e) => !e.getAttribute('aria-label') && !e.textContent.trim() && !e.labels?.length).map((e) => e.outerHTML)`) {
		t.Errorf("a control has no name: %s", unlabelled)
	}
}

// narrow: a phone's screen shows lists and objects without scrolling sideways.
func narrow(t *testing.T, p *portico) {
	b := open(t, p)
	b.run(emulation.SetDeviceMetricsOverride(390, 800, 2, true))
	b.login(p.token)
	for hash, what := range map[string]string{"#/": "Health", "#/r/core/v1/namespaces": "kube-system", "#/o/core/v1/namespaces/-/default": "Managed fields"} {
		b.goTo(hash)
		b.sees(what)
		if wide := evaluate[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s is %d pixels wide", hash, wide)
		}
	}
	b.run(chromedp.Click("#menu"))
	b.sees("Admission")
	b.shoot("narrow-menu")
	b.goTo("#/r/core/v1/namespaces")
	b.sees("kube-system")
	b.shoot("narrow-list")
}

// closeWatch: watches are shown with the replica that serves them, and can be closed.
func closeWatch(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	b.goTo("#/watches")
	b.sees("All watches are of the system.")
	b.run(chromedp.Click(`main input[type="checkbox"]`))
	b.sees("Replica")
	b.click("Close")
	b.click("Close the watch")
	b.sees("Closed.")
}

// columns: those of all rows are below those of the head, however long the text of a cell is.
func columns(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	p.must(t, http.MethodGet, "/api/v1/namespaces/"+strings.Repeat("long-", 12)+"/configmaps", nil)
	b.goTo("#/audit")
	b.sees("long-long")
	b.run(chromedp.Poll(`(() => {
		const left = (e) => [...e.children].map((c) => Math.round(c.getBoundingClientRect().left)).join();
		const lines = [...document.querySelectorAll('.grid .line')];
		return lines.length > 3 && lines.every((l) => left(l) === left(document.querySelector('.grid .cols')));
	})()`, nil))
}

// address: the filter and the order of a list are in its address; a list without rows says so.
func address(t *testing.T, p *portico) {
	b := open(t, p)
	b.login(p.token)
	p.must(t, http.MethodPost, configMaps, configMap("addressed", "1"))
	b.goTo("#/r/core/v1/configmaps?ns=default")
	b.sees("addressed")
	b.run(chromedp.SendKeys("#filter", "address"), chromedp.Click(`//button[text()="Data"]`, chromedp.BySearch))
	if at := evaluate[string](b, `location.hash`); at != "#/r/core/v1/configmaps?ns=default&q=address&s=1" {
		t.Errorf("the address is %s", at)
	}
	b.run(chromedp.Reload(), chromedp.WaitVisible("#filter"))
	b.run(chromedp.Poll(`document.querySelector('#filter').value === 'address' && document.querySelector('[aria-sort="ascending"]').innerText === 'Data'`, nil))
	b.run(chromedp.SendKeys("#filter", "no such"))
	b.sees("No row matches the filter.")
	b.goTo("#/r/apps/v1/deployments?ns=default")
	b.sees("There are no deployments in namespace default.")
	b.sees("Ready")
}

// away: a server that does not respond is named, and what failed meanwhile is shown once it is back.
func away(t *testing.T, p *portico) {
	b := open(t, p)
	b.allow("ERR_INTERNET_DISCONNECTED")
	b.login(p.token)
	connected := func(yes bool) {
		b.run(network.EmulateNetworkConditions(!yes, 0, -1, -1))
	}
	connected(false)
	b.goTo("#/r/core/v1/nodes")
	b.sees("The server does not respond. Trying again")
	connected(true)
	b.sees("There are no nodes.")
	b.seesNot("does not respond")
}

// tour: each page is drawn in both themes, with enough contrast.
func tour(t *testing.T, p *portico) {
	p.must(t, http.MethodPost, configMaps, configMap("shown", "one"))
	p.must(t, http.MethodPatch, configMaps+"/shown", object{"data": object{"key": "two", "more": "three"}})
	for _, name := range []string{"light", "dark"} {
		b := open(t, p)
		b.allow("410")
		b.run(theme(name), chromedp.WaitVisible("#token"))
		b.shoot(name + "-login")
		b.login(p.token)
		for _, page := range []struct{ hash, shows, name string }{
			{"#/", "Health", "overview"},
			{"#/r/core/v1/configmaps?ns=default", "shown", "list"},
			{"#/o/core/v1/configmaps/default/shown", "key: two", "object"},
			{"#/watches", "of the system, too", "watches"},
			{"#/admission", "ValidatingWebhookConfiguration", "admission"},
			{"#/credentials", "Bootstrap tokens", "credentials"},
			{"#/deprecated", "Users in the last requests", "deprecated"},
			{"#/audit", "requests", "audit"},
		} {
			b.goTo(page.hash)
			if page.name == "object" {
				b.run(chromedp.Poll(`document.querySelector('textarea')?.value.includes('key: two')`, nil))
			} else {
				b.sees(page.shows)
			}
			if page.name == "overview" {
				b.run(chromedp.Sleep(3500 * time.Millisecond)) // rates need two readings
			}
			if low := evaluate[[]string](b, lowContrast); len(low) > 0 {
				t.Errorf("%s, %s: too little contrast: %q", page.name, name, low)
			}
			b.shoot(name + "-" + page.name)
		}
		b.goTo("#/o/core/v1/configmaps/default/shown")
		b.sees("History")
		b.click("History")
		b.sees("-   key: one")
		b.shoot(name + "-history")
	}
}

// lowContrast returns the texts whose colour has less than 4.5 times the luminance of their
// background (WCAG AA), disabled controls aside.
const lowContrast = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const rgba = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const luminance = (c) => [...c.slice(0, 3)].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((n, v, i) => n + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return rgba('white'); };
	return [...document.querySelectorAll('body *')].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && !e.closest(':disabled, option, .skip')).filter((e) => {
		const [a, b] = [luminance(rgba(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05) < 4.5;
	}).map((e) => e.textContent.slice(0, 40));
})()`
