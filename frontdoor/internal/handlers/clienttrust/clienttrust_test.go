package clienttrust

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// bench is a store with the ConfigMap.
type bench struct {
	*testing.T
	store  services.Store
	engine *typesystem.Engine
}

func newBench(t *testing.T) *bench {
	t.Helper()
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := typesystem.New(types, typesystem.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, fake.New(t).Store(), engine}
}

func (b *bench) keeper() *Keeper {
	return New(Config{Vocabulary: vocabulary.Platform(), Engine: func() *typesystem.Engine { return b.engine }, Log: slog.New(slog.DiscardHandler),
		Writes: &writes.Handlers{Store: b.store, Vocabulary: vocabulary.Platform(), Log: slog.New(slog.DiscardHandler)}})
}

var theKey = resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "platform-system", Name: name}

// publish passes once and returns the revision and the data of the ConfigMap.
func (b *bench) publish(k *Keeper) (int64, map[string]any) {
	b.Helper()
	if err := k.pass(b.Context()); err != nil {
		b.Fatal(err)
	}
	stored, err := b.store.Get(b.Context(), services.GetRequest{Key: theKey})
	if err != nil {
		b.Fatal(err)
	}
	object, err := tree.Decode(stored.JSON)
	if err != nil {
		b.Fatal(err)
	}
	return stored.Revision, tree.Child(object, "data")
}

func (b *bench) authority() (path, content string) {
	b.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		b.Fatal(err)
	}
	files, err := authority.Issue(b.TempDir(), "a")
	if err != nil {
		b.Fatal(err)
	}
	raw, err := os.ReadFile(files.CA)
	if err != nil {
		b.Fatal(err)
	}
	return files.CA, string(raw)
}

// TestWhatIsPublished: the ConfigMap has the authorities and headers of all front doors, and
// follows the files.
func TestWhatIsPublished(t *testing.T) {
	b := newBench(t)
	k := b.keeper()
	if _, data := b.publish(k); len(data) != 0 {
		t.Errorf("without flags: got %v", data)
	}
	clients, first := b.authority()
	k.ClientAuthorities = []string{clients}
	if _, data := b.publish(k); len(data) != 1 || data[keyClients] != first {
		t.Errorf("without proxies: got %v", data)
	}
	proxies, second := b.authority()
	k.ProxyAuthorities = []string{proxies}
	k.UserHeaders, k.GroupHeaders = []string{"X-Remote-User"}, []string{"X-Remote-Group"}
	revision, data := b.publish(k)
	for key, want := range map[string]string{keyClients: first, keyProxies: second, keyUsers: `["X-Remote-User"]`, keyGroups: `["X-Remote-Group"]`, keyExtras: `[]`, keyNames: `[]`} {
		if data[key] != want {
			t.Errorf("%s: got %v, want %s", key, data[key], want)
		}
	}
	other := b.keeper() // of a front door with other settings
	third := ""
	other.ClientAuthorities = make([]string, 1)
	other.ClientAuthorities[0], third = b.authority()
	other.ProxyAuthorities, other.UserHeaders, other.AllowedNames = []string{proxies}, []string{"X-User", "X-Remote-User"}, []string{"proxy"}
	again, data := b.publish(other)
	if again == revision || data[keyClients] != first+third || data[keyProxies] != second || data[keyUsers] != `["X-Remote-User","X-User"]` || data[keyNames] != `["proxy"]` {
		t.Errorf("got %v", data)
	}
	for _, keeper := range []*Keeper{k, other, k} {
		if now, data := b.publish(keeper); now != again {
			t.Errorf("two front doors write in turns: %v", data)
		}
	}
	_, fourth := b.authority()
	if err := os.WriteFile(clients, []byte(fourth), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, data := b.publish(k); data[keyClients] != first+third+fourth {
		t.Errorf("a replaced file: got %v", data)
	}
}

// TestWhatOthersHaveWritten: what is no certificate or no list is replaced, what has expired
// is removed, and a deleted ConfigMap returns.
func TestWhatOthersHaveWritten(t *testing.T) {
	b := newBench(t)
	k := b.keeper()
	path, own := b.authority()
	k.ClientAuthorities, k.ProxyAuthorities, k.UserHeaders = []string{path}, []string{path}, []string{"X-Remote-User"}
	content, err := tree.Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "platform-system", "uid": "u"},
		"data": map[string]any{keyClients: "nonsense", keyUsers: "{", keyGroups: `"text"`, "more": "kept", keyProxies: strings.Repeat(own, 3)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Create(t.Context(), services.CreateRequest{Key: theKey, Content: services.Content{JSON: content}}); err != nil {
		t.Fatal(err)
	}
	_, data := b.publish(k)
	if data[keyClients] != own || data[keyProxies] != own || data[keyUsers] != `["X-Remote-User"]` || data[keyGroups] != `[]` || data["more"] != "kept" {
		t.Errorf("got %v", data)
	}
	k.now = func() time.Time { return time.Now().AddDate(1000, 0, 0) }
	if _, data := b.publish(k); data[keyClients] != "" {
		t.Errorf("an expired certificate: got %v", data[keyClients])
	}
	if _, err := b.store.Delete(t.Context(), services.DeleteRequest{Key: theKey}); err != nil {
		t.Fatal(err)
	}
	k.now = time.Now
	if _, data := b.publish(k); data[keyClients] != own {
		t.Errorf("after its deletion: got %v", data)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.ClientAuthorities = []string{empty}
	if err := k.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("a file without certificates: got %v", err)
	}
}
