package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestRestoredEtcd replaces etcd's data by an older state, once as the same cluster and
// once as another one, while its clients keep running: within seconds all of them follow
// the restored state.
func TestRestoredEtcd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts eleven processes")
	}
	t.Run("the same cluster", func(t *testing.T) {
		newRestoration(t).run(t, func(r *restoration) { r.startEtcd(t, r.backup, "") })
	})
	t.Run("another cluster", func(t *testing.T) {
		newRestoration(t).run(t, func(r *restoration) {
			data := t.TempDir()
			r.copyAsAnother(t, data)
			r.startEtcd(t, data, "another")
		})
	})
}

// restoration is a suite whose etcd is restored.
type restoration struct {
	*suite
	*cluster.Cluster
	backup string
}

func newRestoration(t *testing.T) *restoration {
	t.Helper()
	return restorationOf(t, newSuite(t, vocabulary.K8s()))
}

// restorationOf starts the suite without its workers; the arguments are for what uses etcd.
func restorationOf(t *testing.T, s *suite, ofEtcd ...string) *restoration {
	t.Helper()
	for _, p := range programs() {
		if p.offer || len(p.peers) > 0 {
			if p.name == "admission" { // without lifecycle there are no accounts
				p.args = []string{"--disable-admission-plugins=ServiceAccount"}
			}
			if p.etcd {
				p.args = append(p.args, ofEtcd...)
			}
			s.start(t, p)
		}
	}
	return &restoration{suite: s, Cluster: s.connect(t, "frontdoor"), backup: t.TempDir()}
}

// startEtcd starts etcd at its address with other data.
func (r *restoration) startEtcd(t *testing.T, dir, token string) {
	t.Helper()
	r.startServer(t, "etcd", "-dir", dir, "-token", token)
}

func (r *restoration) stopEtcd(t *testing.T) { r.processes["etcd"].stop(t) }

// copyAsAnother makes another cluster that holds what the backup holds.
func (r *restoration) copyAsAnother(t *testing.T, data string) {
	t.Helper()
	address := r.addresses["etcd"]
	defer func() { r.addresses["etcd"] = address }()
	var held []*clientv3.OpResponse
	for _, step := range []struct {
		dir, token string
		use        func(*clientv3.Client) error
	}{
		{r.backup, "", func(c *clientv3.Client) error {
			answer, err := c.Do(t.Context(), clientv3.OpGet("/portico/", clientv3.WithPrefix()))
			held = append(held, &answer)
			return err
		}},
		{data, "another", func(c *clientv3.Client) error {
			for _, kv := range held[0].Get().Kvs {
				if _, err := c.Put(t.Context(), string(kv.Key), string(kv.Value)); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		var err error
		if r.addresses["etcd"], err = loopback.FreeAddress(); err != nil {
			t.Fatal(err)
		}
		r.startEtcd(t, step.dir, step.token)
		client := r.etcdClient(t)
		if err := step.use(client); err != nil {
			t.Fatal(err)
		}
		_ = client.Close()
		r.stopEtcd(t)
	}
}

func (r *restoration) etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	files := r.issue(t, "checker", "checker")
	security, err := (transport.TLSInfo{TrustedCAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + r.addresses["etcd"]}, TLS: security, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// binding is what lets a user read secrets.
func binding(user string) string {
	group := "rbac.authorization.k8s.io"
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"ClusterRoleBinding","metadata":{"name":%q},
		"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":%q,"kind":"User","name":%q}]}`,
		group, user, group, group, user)
}

// may returns the code of a user's list of secrets.
func (r *restoration) may(t *testing.T, user string) int {
	t.Helper()
	return r.Ask(t, cluster.Request{Path: "/api/v1/secrets", Header: http.Header{"Impersonate-User": {user}}}).Code
}

// write sends a request that has to succeed.
func (r *restoration) write(t *testing.T, method, path, kind, body string) {
	t.Helper()
	if a := r.Ask(t, cluster.Request{Method: method, Path: path, Type: kind, Body: body}); a.Code >= 300 {
		t.Fatalf("%s %s: %d %.300s", method, path, a.Code, a.Body)
	}
}

const (
	configMapPath = "/api/v1/namespaces/default/configmaps"
	mergePatch    = "application/merge-patch+json"
)

func mapNamed(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"state":"first"}}`, name)
}

func (r *restoration) run(t *testing.T, restore func(*restoration)) {
	bindings := "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	r.write(t, "POST", configMapPath, "", mapNamed("kept"))
	r.write(t, "POST", bindings, "", binding("bob"))
	eventually(t, "bob may", func() bool { return r.may(t, "bob") == http.StatusOK })
	r.stopEtcd(t)
	if err := os.CopyFS(r.backup, os.DirFS(r.data)); err != nil {
		t.Fatal(err)
	}
	r.startEtcd(t, r.data, "")
	eventually(t, "ready again", func() bool { return r.Ask(t, cluster.Request{Path: "/readyz"}).Code == http.StatusOK })

	// What the restore will undo.
	definitions := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	r.write(t, "PATCH", configMapPath+"/kept", mergePatch, `{"data":{"state":"second"}}`)
	r.write(t, "DELETE", bindings+"/bob", "", "")
	r.write(t, "POST", bindings, "", binding("alice"))
	r.write(t, "POST", definitions, "", definition())
	for i := range 50 {
		r.write(t, "POST", configMapPath, "", mapNamed(fmt.Sprint("ghost", i)))
	}
	eventually(t, "alice may and bob may not", func() bool { return r.may(t, "alice") == http.StatusOK && r.may(t, "bob") == http.StatusForbidden })
	eventually(t, "the custom type is served", func() bool {
		return r.Ask(t, cluster.Request{Path: "/apis/ghosts.example.com/v1/ghosts"}).Code == http.StatusOK
	})
	before := r.version(t, configMapPath+"?limit=1")
	var chunk struct{ Metadata struct{ Continue string } }
	r.Ask(t, cluster.Request{Path: configMapPath + "?limit=1"}).Decode(t, &chunk)
	ended := r.watch(t, configMapPath, before, func(kind string, _ []byte) bool { return kind == "ERROR" })

	r.stopEtcd(t)
	restore(r)
	restored := time.Now()
	eventually(t, "the break is logged by the store, or that the hub has begun a new epoch", func() bool {
		content, err := os.ReadFile(r.processes["store"].output)
		return err == nil && (strings.Contains(string(content), "history of etcd is broken") || strings.Contains(string(content), "a new epoch of the store has begun"))
	})
	t.Logf("noticed after %v", time.Since(restored))
	r.checkRestored(t)
	t.Logf("all follow the restored state after %v", time.Since(restored))
	select {
	case last := <-ended:
		if !strings.Contains(last, `"code":410`) {
			t.Errorf("the watch from before the restore ends with %s", last)
		}
	case <-time.After(patience):
		t.Error("the watch from before the restore goes on")
	}
	for _, path := range []string{
		configMapPath + "?watch=1&timeoutSeconds=5&resourceVersion=" + before,
		configMapPath + "?resourceVersionMatch=Exact&resourceVersion=" + before,
		configMapPath + "?limit=1&continue=" + chunk.Metadata.Continue,
	} {
		if a := r.Ask(t, cluster.Request{Path: path}); !strings.Contains(a.Body, `"code":410`) {
			t.Errorf("%s: %d %.300s, want 410: the version is of the lost history", path, a.Code, a.Body)
		}
	}
	for replica, p := range r.processes {
		if replica != "etcd" && p.hasEnded() {
			t.Errorf("%s has ended", replica)
		}
	}
}

// checkRestored waits until all components follow the restored state, and writes.
func (r *restoration) checkRestored(t *testing.T) {
	t.Helper()
	ask := func(path string) cluster.Answer { return r.Ask(t, cluster.Request{Path: path}) }
	eventually(t, "ready", func() bool { return ask("/readyz").Code == http.StatusOK })
	eventually(t, "the restored state is read", func() bool {
		kept := ask(configMapPath + "/kept")
		return kept.Code == http.StatusOK && strings.Contains(kept.Body, `"first"`) && ask(configMapPath+"/ghost49").Code == http.StatusNotFound &&
			!strings.Contains(ask(configMapPath+"?resourceVersion=0").Body, "ghost")
	})
	eventually(t, "authorization follows", func() bool { return r.may(t, "alice") == http.StatusForbidden && r.may(t, "bob") == http.StatusOK })
	eventually(t, "the custom type is gone", func() bool { return ask("/apis/ghosts.example.com/v1/ghosts").Code == http.StatusNotFound })
	seen := r.watch(t, configMapPath, r.version(t, configMapPath+"?limit=1"), func(kind string, object []byte) bool {
		return kind == "ADDED" && strings.Contains(string(object), `"after"`)
	})
	r.write(t, "POST", configMapPath, "", mapNamed("after"))
	if a := ask(configMapPath + "/after"); a.Code != http.StatusOK {
		t.Errorf("what was just created: %d %s", a.Code, a.Body)
	}
	r.write(t, "PATCH", configMapPath+"/kept", mergePatch, `{"data":{"state":"third"}}`)
	select {
	case <-seen:
	case <-time.After(patience):
		t.Error("a new watch does not deliver")
	}
}

// version returns the resourceVersion of a list.
func (r *restoration) version(t *testing.T, path string) string {
	t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	r.Ask(t, cluster.Request{Path: path}).Decode(t, &list)
	return list.Metadata.ResourceVersion
}

// watch watches a collection after a resourceVersion and sends the first matching event.
func (r *restoration) watch(t *testing.T, path, version string, wanted func(kind string, object []byte) bool) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	response, err := r.Send(ctx, cluster.Request{Path: path + "?watch=1&resourceVersion=" + version})
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e struct {
				Type   string
				Object json.RawMessage
			}
			if json.Unmarshal(lines.Bytes(), &e) == nil && wanted(e.Type, e.Object) {
				found <- lines.Text()
				return
			}
		}
	}()
	return found
}

// definition is a custom type that the restore undoes.
func definition() string {
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "ghosts.ghosts.example.com"},
		"spec": map[string]any{
			"group": "ghosts.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "ghosts", "singular": "ghost", "kind": "Ghost", "listKind": "GhostList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(content)
}
