package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// verdicts: the calls of an admission service are shown, and when certificates of the suite expire.
func verdicts(t *testing.T, p *portico) {
	p.must(t, http.MethodPost, "/apis/extension.portico.dev/v1/admissionservices", object{
		"apiVersion": "extension.portico.dev/v1", "kind": "AdmissionService", "metadata": object{"name": "unreachable"},
		"spec": object{"protocol": "webhook", "endpoint": object{"url": "https://127.0.0.1:1/"}, "phase": "Validate", "mode": "Shadow", "sideEffects": "None", "failurePolicy": "Ignore",
			"objectSelector": object{"matchLabels": object{"asked": "yes"}},
			"rules":          []object{{"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}}}}})
	asked := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "asked", "labels": object{"asked": "yes"}}}
	for deadline := time.Now().Add(time.Minute); ; {
		p.must(t, http.MethodPost, configMaps+"?dryRun=All", asked)
		if metrics := string(p.must(t, http.MethodGet, "/metrics", nil)); strings.Contains(metrics, `service="unreachable",verdict="failed"}`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the service is not asked")
		}
	}
	b := open(t, p)
	b.login(p.token)
	b.goTo("#/admission")
	b.sees("unreachable")
	b.run(chromedp.Poll(`[...document.querySelectorAll('.verdicts')].some((e) => / [1-9]\d* failed$/.test(e.ariaLabel) && e.firstChild.getBoundingClientRect().width > 50)`, nil))
	b.goTo("#/credentials")
	b.sees("Certificates of the suite")
	b.sees("serving.crt")
}

// documents: the documentation is searched and read, in both themes and on a narrow screen.
func documents(t *testing.T, p *portico) {
	b := open(t, p)
	for _, name := range []string{"light", "dark"} {
		b.run(theme(name), chromedp.Navigate(p.url+"/docs/operations/tools.md"))
		b.sees("Who may do what")
		if low := evaluate[[]string](b, lowContrast); len(low) > 0 {
			t.Errorf("%s: too little contrast: %q", name, low)
		}
		b.shoot(name + "-docs")
	}
	b.run(chromedp.Click("#theme"), chromedp.Navigate(p.url+"/docs/"))
	b.sees("Tutorial")
	if chosen := evaluate[string](b, `document.documentElement.dataset.theme`); chosen != "light" {
		t.Errorf("the theme is %q on the next page", chosen)
	}
	b.run(chromedp.SendKeys("#search", "explain-access"))
	b.sees("Tools: Who may do what")
	b.run(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#who-may-do-what"))
	b.run(chromedp.Navigate(p.url+"/docs/reference/kinds"), chromedp.Click(`//a[text()="Deployment"]`, chromedp.BySearch), chromedp.WaitVisible("#fields"))
	b.sees("Up-to-date")
	b.run(emulation.SetDeviceMetricsOverride(390, 800, 2, true))
	for _, page := range []string{"operations/tools.md", "security.md", "performance.md", "reference/flags", "reference/metrics"} {
		b.run(chromedp.Navigate(p.url + "/docs/" + page))
		if wide := evaluate[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s is %d pixels wide", page, wide)
		}
	}
	b.seesNot("Decision records")
	b.run(chromedp.Click("#menu"))
	b.sees("Decision records")
	b.shoot("narrow-docs")
}
