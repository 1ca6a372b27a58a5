package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser returns the path of Chromium, and skips the test where there is none.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium here (Debian's package is chromium)")
	return ""
}

// tab is a tab of a browser. What its page reports as errors, violations of the content
// security policy included, fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	allowed []string
}

func open(t *testing.T, p *portico) *tab {
	t.Helper()
	b := blank(t)
	b.run(chromedp.Navigate(p.url + "/console/"))
	return b
}

// blank returns a tab without a page, of a browser that finds every name that ends with .test on this
// machine.
func blank(t *testing.T) *tab {
	t.Helper()
	path := browser(t)
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the browser's last processes may still write
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"), chromedp.WindowSize(1280, 800), chromedp.UserDataDir(dir))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits for the end of the browser
	b := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.reported(e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				b.reported(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	b.allow("favicon.ico") // which browsers want of every host
	b.run(log.Enable())
	return b
}

// allow lets the page report errors that contain a text.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

func (b *tab) reported(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, allowed := range b.allowed {
		if strings.Contains(text, allowed) {
			return
		}
	}
	b.t.Errorf("the page reports: %s", text)
}

// run does something in the tab, within a time that is generous even on a busy machine.
func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatal(err, "\n", b.text())
	}
}

// text returns what the page shows.
func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	var shown string
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body?.innerText ?? ''`, &shown)) // the browser may have ended
	return shown
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.run(chromedp.Poll(fmt.Sprintf(`document.body.innerText.includes(%q)`, text), nil, chromedp.WithPollingTimeout(50*time.Second)))
}

// seesNot waits until the page does not show a text.
func (b *tab) seesNot(text string) {
	b.t.Helper()
	b.run(chromedp.Poll(fmt.Sprintf(`!document.body.innerText.includes(%q)`, text), nil, chromedp.WithPollingTimeout(50*time.Second)))
}

// login enters a token, after dark or light has been chosen by the system.
func (b *tab) login(token string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\n"), chromedp.WaitVisible("#logout"))
}

func (b *tab) goTo(hash string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, hash), nil))
}

// evaluate returns the value of an expression of JavaScript.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	var value T
	b.run(chromedp.Evaluate(expression, &value))
	return value
}

// theme makes the system dark or light.
func theme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}
