package legacytokens_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/lifecycle/internal/legacytokens"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	day = 24 * time.Hour
	// unused is how long tokens are not used before they end, and age how old all objects are.
	unused, age = 10 * day, 30 * day
	// agent is the user agent of the controller.
	agent = "controller"
)

// place is an API with one namespace, seen a month after its objects were created.
type place struct {
	*testing.T
	api                              *apitest.API
	names                            vocabulary.Vocabulary
	accounts, secrets, pods, records apitest.Objects
	now                              time.Time
}

func prepare(t *testing.T, names vocabulary.Vocabulary) *place {
	t.Helper()
	served := func(plural, kind string) apitest.Type {
		return apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: plural}, Kind: kind, Namespaced: true}
	}
	types := []apitest.Type{served("serviceaccounts", "ServiceAccount"), served("secrets", "Secret"), served("pods", "Pod"), served("configmaps", "ConfigMap")}
	p := &place{T: t, api: apitest.Start(t, types...), names: names, now: time.Now().Add(age)}
	p.accounts, p.secrets = p.api.Objects(t, types[0].GroupVersionResource, "here"), p.api.Objects(t, types[1].GroupVersionResource, "here")
	p.pods, p.records = p.api.Objects(t, types[2].GroupVersionResource, "here"), p.api.Objects(t, types[3].GroupVersionResource, names.Namespace("system"))
	return p
}

// start starts the controller.
func (p *place) start(unused time.Duration) {
	p.Helper()
	config := p.api.Config()
	config.UserAgent = agent
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	metadata, err := inventory.NewMetadataClient(config, p.names)
	if err != nil {
		p.Fatal(err)
	}
	c := legacytokens.New(legacytokens.Config{Client: client, Metadata: metadata, Vocabulary: p.names, Unused: unused,
		Clock: clock.NewFakePassiveClock(p.now), Log: slog.New(slog.DiscardHandler)})
	var loops sync.WaitGroup
	loops.Go(func() { _ = c.Run(p.Context()) })
	p.Cleanup(loops.Wait)
}

// ago returns the date of some time ago.
func (p *place) ago(d time.Duration) string { return p.now.Add(-d).UTC().Format(time.DateOnly) }

// recorded says since when uses are recorded.
func (p *place) recorded(since string) {
	p.records.Create(map[string]any{"name": p.names.TokenTracking()}, map[string]any{"data": map[string]any{"since": since}})
}

// token creates a token secret of the account robot; labels are names and values.
func (p *place) token(name string, labels ...string) {
	set := map[string]any{}
	for ; len(labels) > 0; labels = labels[2:] {
		set[labels[0]] = labels[1]
	}
	p.secrets.Create(map[string]any{"name": name, "labels": set, "annotations": map[string]any{p.names.Qualified("", "service-account.name"): "robot"}},
		map[string]any{"type": p.names.Qualified("", "service-account-token")})
}

// robot creates the account, which lists secrets.
func (p *place) robot(listed ...string) {
	var references []any
	for _, name := range listed {
		references = append(references, map[string]any{"name": name})
	}
	p.accounts.Create(map[string]any{"name": "robot"}, map[string]any{"secrets": references})
}

// invalid returns the label of a secret that says since when its token is invalid.
func (p *place) invalid(name string) string {
	secret := p.secrets.Get(name)
	if secret == nil {
		return "the secret is gone"
	}
	return secret.GetLabels()[p.names.TokenInvalidSince()]
}

// TestUnusedTokensEnd: only tokens that nobody has used are marked, and deleted later, in both
// vocabularies.
func TestUnusedTokensEnd(t *testing.T) {
	for _, names := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		p := prepare(t, names)
		p.recorded(p.ago(age))
		last, since := names.TokenLastUsed(), names.TokenInvalidSince()
		kept := map[string][]string{
			"just-used": {last, p.ago(0)}, "used-then": {last, p.ago(unused)}, "unreadable": {last, "yesterday"},
			"mounted": nil, "pulling": nil, "unlisted": nil, "new": nil,
			"used-again": {last, p.ago(day), since, p.ago(25 * day)}, "just-invalid": {since, p.ago(unused)},
		}
		listed := []string{"old", "never", "wrong-mark"}
		for name, labels := range kept {
			p.token(name, labels...)
			if name != "unlisted" {
				listed = append(listed, name)
			}
		}
		p.secrets.Create(map[string]any{"name": "opaque"}, map[string]any{"type": "Opaque"})
		p.secrets.Create(map[string]any{"name": "of-another", "annotations": map[string]any{
			names.Qualified("", "service-account.name"): "robot", names.Qualified("", "service-account.uid"): "earlier"}},
			map[string]any{"type": names.Qualified("", "service-account-token")})
		p.pods.Create(map[string]any{"name": "a"}, map[string]any{"spec": map[string]any{"volumes": []any{
			map[string]any{"name": "v", "secret": map[string]any{"secretName": "mounted"}}}}})
		p.pods.Create(map[string]any{"name": "b"}, map[string]any{"spec": map[string]any{"imagePullSecrets": []any{map[string]any{"name": "pulling"}}}})
		p.secrets.Change("new", func(o *unstructured.Unstructured) {
			o.SetCreationTimestamp(metav1.NewTime(p.now.Add(-unused + time.Hour)))
		})
		p.token("old", last, p.ago(unused+2*day), since, p.ago(unused+2*day))
		p.token("wrong-mark", since, "x")
		p.token("never")
		p.robot(append(listed, "opaque", "of-another")...)
		p.start(unused)
		p.secrets.AwaitGone("old")
		for _, name := range []string{"never", "wrong-mark"} {
			apitest.Eventually(t, name+" is marked", func() bool { return p.invalid(name) == p.ago(0) })
		}
		for name, labels := range kept {
			want := ""
			if len(labels) > 0 && labels[len(labels)-2] == since {
				want = labels[len(labels)-1]
			}
			if got := p.invalid(name); got != want {
				t.Errorf("%s: %s is marked with %q, want %q", names.Domain, name, got, want)
			}
		}
		for _, name := range []string{"opaque", "of-another"} {
			if got := p.invalid(name); got != "" {
				t.Errorf("%s: %s is marked with %q", names.Domain, name, got)
			}
		}
	}
}

// TestNothingIsKnownOfUses: while uses have not been recorded for long enough, no token ends.
func TestNothingIsKnownOfUses(t *testing.T) {
	p := prepare(t, vocabulary.Platform())
	var asked, listed atomic.Int64
	p.api.Refuse = func(r *http.Request) int {
		switch {
		case strings.Contains(r.URL.Path, "/configmaps/") && r.UserAgent() == agent:
			asked.Add(1)
		case strings.HasSuffix(r.URL.Path, "/v1/secrets"):
			listed.Add(1)
		}
		return 0
	}
	p.token("never")
	p.robot("never")
	p.start(time.Second)
	searched := func(what string) {
		t.Helper()
		before := asked.Load()
		apitest.Eventually(t, "two searches, "+what, func() bool { return asked.Load() > before+1 })
		if listed.Load() > 0 {
			t.Fatalf("%s: secrets are searched", what)
		}
	}
	searched("without a record")
	p.recorded("")
	for what, since := range map[string]string{"without a date": "x", "since today": p.ago(0)} {
		p.records.Change(p.names.TokenTracking(), func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, since, "data", "since")
		})
		searched(what)
	}
	p.records.Change(p.names.TokenTracking(), func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, p.ago(2*day), "data", "since")
	})
	apitest.Eventually(t, "the token is marked", func() bool { return p.invalid("never") == p.ago(0) })
}

// TestUsedMeanwhile: a token whose use is recorded between reading and deleting it stays, and
// other lost races are tried again.
func TestUsedMeanwhile(t *testing.T) {
	p := prepare(t, vocabulary.Platform())
	p.recorded(p.ago(age))
	p.token("used", p.names.TokenInvalidSince(), p.ago(age))
	p.token("unused", p.names.TokenInvalidSince(), p.ago(age))
	p.token("never")
	p.robot("used", "unused", "never")
	var use sync.Once
	var refused atomic.Int64
	p.api.Refuse = func(r *http.Request) int {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/used"):
			use.Do(func() {
				p.secrets.Change("used", func(o *unstructured.Unstructured) {
					o.SetLabels(map[string]string{p.names.TokenLastUsed(): p.ago(0), p.names.TokenInvalidSince(): p.ago(age)})
				})
			})
		case (r.Method == http.MethodPatch || r.Method == http.MethodDelete) && refused.Add(1) <= 4:
			return http.StatusConflict
		}
		return 0
	}
	p.start(unused)
	p.secrets.AwaitGone("unused")
	apitest.Eventually(t, "the token is marked", func() bool { return p.invalid("never") == p.ago(0) })
	if got := p.secrets.Get("used"); got == nil || got.GetLabels()[p.names.TokenLastUsed()] != p.ago(0) {
		t.Errorf("the token that was used is %v", got)
	}
}
