package kms

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"

	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
)

var errDown = status.Error(codes.Unavailable, "the vault is closed")

// bed is a provider with its plugin and a clock that the test moves.
type bed struct {
	*Provider
	plugin *kmsplugin.Plugin
	passed time.Duration
}

func newBed(t testing.TB, plugin *kmsplugin.Plugin) *bed {
	t.Helper()
	p, err := New(slog.New(slog.DiscardHandler)).Get(Spec{Name: "p", Endpoint: plugin.Endpoint(), Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Provider: p, plugin: plugin}
	began := time.Now()
	p.now = func() time.Time { return began.Add(b.passed) }
	t.Cleanup(func() { _ = p.plugin.conn.Close() })
	return b
}

func (b *bed) sealed(t testing.TB, plain string) []byte {
	t.Helper()
	sealed, err := b.Seal([]byte(plain), []byte("about"))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func (b *bed) opens(t testing.TB, sealed []byte, want string) {
	t.Helper()
	if got, err := b.Open(sealed, []byte("about")); err != nil || string(got) != want {
		t.Errorf("opened %q, %v, want %q", got, err, want)
	}
}

// TestSeedsAreDecryptedOnce: another process asks the plugin once for all values of a seed,
// and each value has a key of its own.
func TestSeedsAreDecryptedOnce(t *testing.T) {
	b := newBed(t, kmsplugin.Start(t))
	first, second := b.sealed(t, "swordfish"), b.sealed(t, "swordfish")
	if bytes.Equal(first, second) || bytes.Contains(first, []byte("swordfish")) {
		t.Fatalf("sealed: %q, %q", first, second)
	}
	b.opens(t, first, "swordfish")
	if n := b.plugin.Decrypts(); n != 1 {
		t.Errorf("%d calls of Decrypt for its own seed, which one proves", n)
	}
	other := newBed(t, b.plugin)
	other.opens(t, first, "swordfish")
	other.opens(t, second, "swordfish")
	if n := b.plugin.Decrypts(); n != 2 {
		t.Errorf("%d calls of Decrypt for one seed", n)
	}
}

// TestWrongSeeds: an answer of Decrypt counts once a value has been opened with it. A wrong one is not kept, and not
// requested again for each value; damaged values do not make a right one doubtful.
func TestWrongSeeds(t *testing.T) {
	b := newBed(t, kmsplugin.Start(t))
	sealed := b.sealed(t, "swordfish")
	damaged := bytes.Clone(sealed)
	damaged[len(damaged)-1] ^= 1
	other := newBed(t, b.plugin)
	b.plugin.Misbehave(kmsplugin.Faults{Decrypt: func(a *api.DecryptResponse) { a.Plaintext = make([]byte, seedSize) }})
	before := b.plugin.Decrypts()
	for range 5 {
		if got, err := other.Open(sealed, []byte("about")); err == nil {
			t.Fatalf("opened with a wrong seed: %q", got)
		}
	}
	if n := b.plugin.Decrypts() - before; n != 1 {
		t.Errorf("%d calls of Decrypt within %v", n, freshFailed)
	}
	b.plugin.Misbehave(kmsplugin.Faults{})
	other.passed += freshFailed
	if got, err := other.Open(damaged, []byte("about")); err == nil {
		t.Fatalf("opened a damaged value: %q", got)
	}
	other.opens(t, sealed, "swordfish")
	before = b.plugin.Decrypts()
	if _, err := other.Open(damaged, []byte("about")); err == nil {
		t.Error("opened a damaged value")
	}
	other.passed += freshFailed
	other.opens(t, sealed, "swordfish")
	if n := b.plugin.Decrypts() - before; n != 0 {
		t.Errorf("%d calls of Decrypt for a seed that is proven", n)
	}
}

// TestForgedValues: each changed byte, each truncation and another path is refused.
func TestForgedValues(t *testing.T) {
	b := newBed(t, kmsplugin.Start(t))
	sealed := b.sealed(t, "swordfish")
	for i := range sealed {
		forged := bytes.Clone(sealed)
		forged[i] ^= 1
		if got, err := b.Open(forged, []byte("about")); err == nil {
			t.Errorf("byte %d: %q", i, got)
		}
		if got, err := b.Open(sealed[:i], []byte("about")); err == nil {
			t.Errorf("first bytes %d: %q", i, got)
		}
	}
	if got, err := b.Open(sealed, []byte("elsewhere")); err == nil {
		t.Errorf("moved: %q", got)
	}
	b.opens(t, sealed, "swordfish")
	if got := b.failed.Len(); got > maxFailures {
		t.Errorf("%d failures in memory", got)
	}
}

func TestRotation(t *testing.T) {
	b := newBed(t, kmsplugin.Start(t))
	old := b.sealed(t, "a")
	b.plugin.Rotate(t)
	if b.Stale(old) {
		t.Error("stale before the plugin was asked")
	}
	b.passed += pollHealthy
	if !b.due() || b.Check(t.Context()) != nil {
		t.Fatal("the plugin is not polled")
	}
	next := b.sealed(t, "b")
	if !b.Stale(old) || b.Stale(next) {
		t.Errorf("stale: old %v, new %v", b.Stale(old), b.Stale(next))
	}
	if !bytes.Contains(next, []byte("key-2")) || bytes.Contains(next, []byte("key-1")) {
		t.Errorf("sealed with %q", next)
	}
	b.plugin.Stop()
	b.opens(t, old, "a")
	b.opens(t, next, "b")
	if n := testutil.ToFloat64(b.metrics.rotations.WithLabelValues("p")); n != 2 {
		t.Errorf("%v seeds", n)
	}
	// Another start uses another seed of the same key, which is not stale.
	b.plugin.Serve(t)
	if b.Stale(newBed(t, b.plugin).sealed(t, "c")) {
		t.Error("the seed of another process is stale")
	}
}

// TestOutage: without the plugin, seeds in memory decrypt for ever, and the last one
// encrypts for three minutes.
func TestOutage(t *testing.T) {
	for name, outage := range map[string]struct {
		begin, end func(*testing.T, *kmsplugin.Plugin)
	}{
		"fails":   {func(_ *testing.T, p *kmsplugin.Plugin) { p.Fail(errDown) }, func(_ *testing.T, p *kmsplugin.Plugin) { p.Fail(nil) }},
		"stopped": {func(_ *testing.T, p *kmsplugin.Plugin) { p.Stop() }, func(t *testing.T, p *kmsplugin.Plugin) { p.Serve(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := kmsplugin.Start(t)
			foreign := newBed(t, plugin).sealed(t, "foreign")
			b := newBed(t, plugin)
			own := b.sealed(t, "own")
			outage.begin(t, plugin)
			b.passed += coast - time.Second
			if err := b.Check(t.Context()); err == nil || testutil.ToFloat64(b.metrics.healthy.WithLabelValues("p")) != 0 {
				t.Errorf("healthy: %v", err)
			}
			b.opens(t, b.sealed(t, "late"), "late")
			b.passed += 2 * time.Second
			if _, err := b.Seal(nil, nil); err == nil || !strings.Contains(err.Error(), `KMS provider "p": Status failed: Unavailable`) {
				t.Errorf("sealed after three minutes: %v", err)
			}
			b.opens(t, own, "own")
			calls := plugin.Decrypts()
			for range 3 {
				if _, err := b.Open(foreign, []byte("about")); err == nil || !strings.Contains(err.Error(), "Decrypt failed: Unavailable") {
					t.Errorf("opened with an unknown seed: %v", err)
				}
			}
			if n := plugin.Decrypts() - calls; n > 1 {
				t.Errorf("%d calls of a plugin that is away", n)
			}
			outage.end(t, plugin)
			deadline, ticks := time.Now().Add(10*time.Second), time.NewTicker(50*time.Millisecond)
			defer ticks.Stop()
			for err := b.Check(t.Context()); err != nil; err = b.Check(t.Context()) {
				if b.passed += freshFailed; time.Now().After(deadline) {
					t.Fatal(err)
				}
				<-ticks.C
			}
			b.passed += freshFailed
			b.opens(t, foreign, "foreign")
			if sealed := b.sealed(t, "again"); b.Stale(own) || b.Stale(sealed) {
				t.Error("the outage made values stale")
			}
		})
	}
}

// TestMisbehaviour: answers that the API does not allow are refused, and the seed in use
// stays.
func TestMisbehaviour(t *testing.T) {
	plugin := kmsplugin.Start(t)
	status := func(f func(*api.StatusResponse)) { plugin.Misbehave(kmsplugin.Faults{Status: f}) }
	encrypt := func(f func(*api.EncryptResponse)) { plugin.Misbehave(kmsplugin.Faults{Encrypt: f}) }
	for want, misbehave := range map[string]func(){
		`its healthz is "sick", not ok`:     func() { status(func(a *api.StatusResponse) { a.Healthz = "sick" }) },
		`its version is "v1beta1", not v2`:  func() { status(func(a *api.StatusResponse) { a.Version = "v1beta1" }) },
		"key_id: it has 0 bytes":            func() { status(func(a *api.StatusResponse) { a.KeyId = "" }) },
		"key_id: it has 1025 bytes":         func() { status(func(a *api.StatusResponse) { a.KeyId = strings.Repeat("x", 1025) }) },
		"another key_id than Status":        func() { encrypt(func(a *api.EncryptResponse) { a.KeyId = "x" }) },
		"ciphertext: it has 0 bytes":        func() { encrypt(func(a *api.EncryptResponse) { a.Ciphertext = nil }) },
		"ciphertext: it has 1025 bytes":     func() { encrypt(func(a *api.EncryptResponse) { a.Ciphertext = make([]byte, 1025) }) },
		"annotations: they have more than":  func() { encrypt(func(a *api.EncryptResponse) { a.Annotations["a.b.c"] = make([]byte, 32<<10) }) },
		"annotations: Invalid value: \"a\"": func() { encrypt(func(a *api.EncryptResponse) { a.Annotations["a"] = nil }) },
		"does not decrypt what it has": func() {
			plugin.Misbehave(kmsplugin.Faults{Decrypt: func(a *api.DecryptResponse) { a.Plaintext = make([]byte, seedSize) }})
		},
		"Decrypt failed: InvalidArgument":   func() { encrypt(func(a *api.EncryptResponse) { a.Ciphertext = make([]byte, 100) }) },
		"Encrypt failed: ResourceExhausted": func() { encrypt(func(a *api.EncryptResponse) { a.Ciphertext = make([]byte, 1<<20) }) },
	} {
		status(nil)
		b := newBed(t, plugin)
		old := b.sealed(t, "old")
		plugin.Rotate(t)
		misbehave()
		b.passed += pollHealthy
		if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if sealed := b.sealed(t, "new"); b.Stale(old) || b.Stale(sealed) {
			t.Errorf("%s: the seed in use was replaced", want)
		}
		if _, err := newBed(t, plugin).Seal(nil, nil); err == nil {
			t.Errorf("%s: a new process encrypts", want)
		}
	}
}

// TestSilence: a plugin that accepts calls and does not answer costs the timeout once.
func TestSilence(t *testing.T) {
	plugin := kmsplugin.Start(t)
	release := make(chan struct{})
	plugin.Misbehave(kmsplugin.Faults{Status: func(*api.StatusResponse) { <-release }})
	t.Cleanup(func() { close(release) })
	p, err := New(slog.New(slog.DiscardHandler)).Get(Spec{Name: "p", Endpoint: plugin.Endpoint(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 10 {
		if _, err := p.Seal(nil, nil); err == nil || !strings.Contains(err.Error(), "DeadlineExceeded") {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // each its timeout: ten
		t.Errorf("ten writes took %v", took)
	}
}

func TestSockets(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///run/kms.sock": "/run/kms.sock", "unix:///@kms": "@kms",
		"": "", "/run/kms.sock": "", "unix:///": "", "unix://": "", "unix://run/kms.sock": "", "unix:run": "",
		"tcp:///run/kms.sock": "", "https://kms:1": "", "unix:///a?b=c": "", "unix:///a#b": "", "unix:///%zz": "",
	} {
		if got, err := Socket(endpoint); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", endpoint, got, err)
		}
	}
}

// TestUnusedProviders: a provider that is no longer configured is closed after a while, and
// one that is stays with its seed.
func TestUnusedProviders(t *testing.T) {
	plugin := kmsplugin.Start(t)
	set := New(slog.New(slog.DiscardHandler))
	get := func(i int) *Provider {
		p, err := set.Get(Spec{Name: fmt.Sprint(i), Endpoint: plugin.Endpoint(), Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	kept, dropped := get(1), get(2)
	set.Poll(t.Context(), []*Provider{kept, dropped})
	if kept.writes.Load() == nil || kept.due() {
		t.Error("not polled")
	}
	set.Poll(t.Context(), []*Provider{kept})
	set.open[dropped.spec].unused = time.Now().Add(-2 * grace)
	set.Poll(t.Context(), []*Provider{kept})
	if get(1) != kept || get(2) == dropped {
		t.Error("the wrong provider was closed")
	}
	if n := testutil.CollectAndCount(set, "portico_kms_healthy"); n != 1 {
		t.Errorf("metrics of %d providers", n)
	}
}

func FuzzOpen(f *testing.F) {
	plugin := kmsplugin.Start(f)
	b := newBed(f, plugin)
	f.Add(b.sealed(f, "swordfish"))
	f.Add([]byte{})
	plugin.Fail(errDown) // what is found is found without it
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if got, err := b.Open(sealed, []byte("about")); err == nil && string(got) != "swordfish" {
			t.Errorf("opened %q", got)
		}
		b.Stale(sealed)
	})
}

func BenchmarkProvider(b *testing.B) {
	p := newBed(b, kmsplugin.Start(b))
	plain := bytes.Repeat([]byte("x"), 2<<10)
	sealed := p.sealed(b, string(plain))
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			_, _ = p.Seal(plain, nil)
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			_, _ = p.Open(sealed, []byte("about"))
		}
	})
}
