package store

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/kit/etcd/atrest"
	"github.com/portico-platform/portico/services/kit/kittest/kmsplugin"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const identity = "{identity: {}}"

// aKey returns a provider with one key, which depends on its name.
func aKey(kind, name string) string {
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))
	return fmt.Sprintf("{%s: {keys: [{name: %s, secret: %s}]}}", kind, name, secret)
}

// configure writes a configuration for pods and returns the path of the file.
func configure(t testing.TB, path string, providers ...string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "encryption.yaml")
	}
	next := path + ".next"
	content := "apiVersion: apiserver.config.platform.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- {resources: [pods], providers: [" + strings.Join(providers, ", ") + "]}\n"
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// encrypted starts a store with a configuration.
func encrypted(t testing.TB, client *clientv3.Client, path string) *Store {
	t.Helper()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	atrest.Flags(fs)
	if err := fs.Parse([]string{"--encryption-provider-config=" + path}); err != nil {
		t.Fatal(err)
	}
	values, err := atrest.Use(&run.Node{Flags: fs, Log: discard, Vocabulary: vocabulary.Platform()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Client: client, Values: values, Log: discard, Metrics: prometheus.NewRegistry(), FutureWait: 50 * time.Millisecond})
	await(t, s)
	return s
}

func raw(t testing.TB, client *clientv3.Client, key resource.Key) []byte {
	t.Helper()
	got, err := client.Get(t.Context(), key.Path())
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("reading %s: %v, %v", key, got, err)
	}
	return got.Kvs[0].Value
}

func get(t testing.TB, s *Store, key resource.Key) (services.Object, error) {
	t.Helper()
	return s.Get(t.Context(), services.GetRequest{Key: key})
}

// TestContractWithEncryption runs the contract suite with every provider. It includes
// lost responses, whose search reads encrypted values.
func TestContractWithEncryption(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "encryption.yaml")
			content := "apiVersion: apiserver.config.platform.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
				"- {resources: ['*.*'], providers: [" + aKey(kind, "one") + "]}\n"
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			contracttest.Store(t, func(t *testing.T) services.Store { return encrypted(t, openEtcd(t), path) })
		})
	}
}

func TestEtcdHoldsNoPlainValues(t *testing.T) {
	client := openEtcd(t)
	plain := replica(t, client)
	create(t, plain, "before")
	s := encrypted(t, client, configure(t, "", aKey("aesgcm", "one"), identity))
	created := create(t, s, "a")
	updated := update(t, s, created, "swordfish")
	if value := raw(t, client, updated.Key); bytes.Contains(value, []byte("swordfish")) || !bytes.HasPrefix(value, []byte(atrest.Prefix+"aesgcm:v1:one:")) {
		t.Errorf("etcd holds %q", value)
	}
	if got, err := get(t, s, updated.Key); err != nil || !bytes.Contains(got.JSON, []byte("swordfish")) {
		t.Errorf("got %s, %v", got.JSON, err)
	}
	again := encrypted(t, client, configure(t, "", aKey("aesgcm", "one"), identity)) // loads what is there
	for _, s := range []*Store{s, again} {
		if page := list(t, s, services.ListRequest{}); len(page.Objects) != 2 {
			t.Errorf("of plain and encrypted objects %d are listed", len(page.Objects))
		}
	}
	old := list(t, s, services.ListRequest{Read: exactly(created.Revision)})
	if len(old.Objects) != 2 {
		t.Errorf("from history: %d objects", len(old.Objects))
	}
	if _, err := s.Delete(t.Context(), services.DeleteRequest{Key: updated.Key}); err != nil {
		t.Error(err)
	}
}

// TestRotationByWriting replaces the key, and rewrites an object by an update without a
// change.
func TestRotationByWriting(t *testing.T) {
	client := openEtcd(t)
	path := configure(t, "", aKey("aesgcm", "one"))
	s := encrypted(t, client, path)
	o := create(t, s, "a")
	rewrite := func() services.Object {
		t.Helper()
		got, err := s.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content("a", "0"), Unchanged: true})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := rewrite(); got.Revision != o.Revision || raw(t, client, o.Key)[0] == '{' {
		t.Errorf("written again with the same key: revision %d after %d", got.Revision, o.Revision)
	}
	configure(t, path, aKey("secretbox", "two"), aKey("aesgcm", "one"))
	deadline := time.Now().Add(10 * time.Second)
	next := rewrite()
	for ; next.Revision == o.Revision && time.Now().Before(deadline); next = rewrite() {
		<-time.After(50 * time.Millisecond) // the file is read once in a second
	}
	if !bytes.HasPrefix(raw(t, client, o.Key), []byte(atrest.Prefix+"secretbox:v1:two:")) {
		t.Fatal("not written with the new key")
	}
	_, err := s.Update(t.Context(), services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: content("a", "0"), Unchanged: true})
	if err != nil { // the value is current, so nothing is to be written
		t.Error(err)
	}
	configure(t, path, aKey("secretbox", "two"))
	if got, err := get(t, encrypted(t, client, path), o.Key); err != nil || got.Revision != next.Revision {
		t.Errorf("without the old key: %+v, %v", got, err)
	}
}

// TestUnreadableValues: a value that cannot be decrypted is an error for its object and for
// lists of it, in memory and from history, and for nothing else.
func TestUnreadableValues(t *testing.T) {
	client := openEtcd(t)
	path := configure(t, "", aKey("aesgcm", "one"))
	s := encrypted(t, client, path)
	good := create(t, s, "good")
	config := create(t, s, "a")
	moved := raw(t, client, config.Key)
	bad := pod("moved")
	other := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: "x"}
	if _, err := s.Create(t.Context(), services.CreateRequest{Key: other, Content: content("x", "one")}); err != nil {
		t.Fatal(err)
	}
	put, err := client.Put(t.Context(), bad.Path(), string(moved))
	if err != nil {
		t.Fatal(err)
	}
	isInternal := func(what string, err error) {
		t.Helper()
		var status *services.Status
		if !errors.As(err, &status) || status.Code != http.StatusInternalServerError || !strings.Contains(status.Message, "moved: the value in etcd cannot be decrypted") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for name, s := range map[string]*Store{"running": s, "started": encrypted(t, client, path)} {
		_, err := get(t, s, bad)
		isInternal(name+": get", err)
		_, err = s.List(t.Context(), services.ListRequest{GroupResource: bad.GroupResource})
		isInternal(name+": list", err)
		_, err = s.List(t.Context(), services.ListRequest{GroupResource: bad.GroupResource, LabelSelector: "a=b"})
		isInternal(name+": list with a selector", err)
		_, err = s.List(t.Context(), services.ListRequest{GroupResource: bad.GroupResource, Read: exactly(put.Header.Revision)})
		isInternal(name+": list at a revision", err)
		_, err = s.Delete(t.Context(), services.DeleteRequest{Key: bad})
		isInternal(name+": delete", err)
		if _, err := get(t, s, good.Key); err != nil {
			t.Errorf("%s: another object: %v", name, err)
		}
		if page, err := s.List(t.Context(), services.ListRequest{GroupResource: other.GroupResource}); err != nil || len(page.Objects) != 1 {
			t.Errorf("%s: another type: %d objects, %v", name, len(page.Objects), err)
		}
		heads, err := s.Heads(t.Context(), []resource.GroupResource{bad.GroupResource, other.GroupResource})
		if err != nil || heads[0].Changed <= heads[0].Revision || heads[1].Changed > heads[1].Revision {
			t.Errorf("%s: copies of the type may be trusted: %+v, %v", name, heads, err)
		}
	}
	if _, err := client.Delete(t.Context(), bad.Path()); err != nil {
		t.Fatal(err)
	}
	if page := list(t, s, services.ListRequest{}); len(page.Objects) != 2 {
		t.Errorf("after its removal from etcd: %d objects", len(page.Objects))
	}
}

// TestKeyThatReturns: objects are served again when their key is configured again.
func TestKeyThatReturns(t *testing.T) {
	client := openEtcd(t)
	one, two := aKey("aescbc", "one"), aKey("aescbc", "two")
	first := encrypted(t, client, configure(t, "", one))
	a, b := create(t, first, "a"), create(t, first, "b")
	path := configure(t, "", two)
	s := encrypted(t, client, path)
	if _, err := get(t, s, a.Key); !services.IsReason(err, services.ReasonUnreadable) {
		t.Fatalf("without the key: %v", err)
	}
	if _, err := replica(t, client).Get(t.Context(), services.GetRequest{Key: a.Key}); err == nil || !strings.Contains(err.Error(), "is not set") {
		t.Errorf("without a configuration: %v", err)
	}
	configure(t, path, two, one)
	if page := list(t, s, services.ListRequest{}); len(page.Objects) != 2 {
		t.Errorf("%d objects", len(page.Objects))
	}
	for _, o := range []services.Object{a, b} {
		if got, ok := s.main.mirror.Snapshot().Get(o.Key.Path()); !ok || !bytes.Equal(got.JSON, o.JSON) {
			t.Errorf("the mirror holds %+v", got)
		}
	}
}

// TestWritesWithoutKMS: writes are refused with 503 until the plugin works, reads go on.
func TestWritesWithoutKMS(t *testing.T) {
	t.Parallel()
	plugin := kmsplugin.Start(t)
	remote := "{kms: {apiVersion: v2, name: a, endpoint: '" + plugin.Endpoint() + "'}}"
	client := openEtcd(t)
	first := encrypted(t, client, configure(t, "", remote))
	o := create(t, first, "a")
	if value := raw(t, client, o.Key); !bytes.HasPrefix(value, []byte(atrest.Prefix+"kms:v2:a:")) {
		t.Errorf("stored: %q", value)
	}
	second := encrypted(t, client, configure(t, "", remote)) // it reads by the seed of the first one
	plugin.Stop()
	if got, err := get(t, second, o.Key); err != nil || !bytes.Equal(got.JSON, o.JSON) {
		t.Errorf("read %s, %v", got.JSON, err)
	}
	update := services.UpdateRequest{Key: o.Key, Revision: o.Revision, Content: services.Content{JSON: o.JSON, UID: o.UID}}
	_, err := second.Update(t.Context(), update)
	if s := services.AsStatus(err); err == nil || s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, `KMS provider "a"`) {
		t.Errorf("got %v", err)
	}
	if _, err := first.Update(t.Context(), update); err != nil {
		t.Errorf("a store with a seed: %v", err)
	}
}

func TestRefusedConfigurations(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	atrest.Flags(fs)
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "missing"): "no such file",
		configure(t, "", "{kms: {name: a}}"):  "resources[0].providers[0].kms.apiVersion: v1",
	} {
		if err := fs.Parse([]string{"--encryption-provider-config=" + path}); err != nil {
			t.Fatal(err)
		}
		_, err := atrest.Use(&run.Node{Flags: fs, Log: discard, Vocabulary: vocabulary.Platform()})
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func BenchmarkWritesWithEncryption(b *testing.B) {
	for _, kind := range []string{"identity", "aescbc", "aesgcm", "secretbox"} {
		b.Run(kind, func(b *testing.B) {
			provider := identity
			if kind != "identity" {
				provider = aKey(kind, "one")
			}
			s := encrypted(b, openEtcd(b), configure(b, "", provider))
			o := create(b, s, "a")
			for b.Loop() {
				o = update(b, s, o, strings.Repeat("x", 2<<10))
			}
		})
	}
}
