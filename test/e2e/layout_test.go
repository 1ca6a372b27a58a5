package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/store/embedded"
	"github.com/portico-platform/portico/test/e2e/cluster"
	"github.com/portico-platform/portico/test/e2e/definitions"
)

// This file starts the suite on data as releases before this one have left it: with
// custom objects among the built-in ones, at keys that only group and resource make.

const (
	customTree = resource.Root + "_custom/"
	things     = "/apis/layout.example.com/v1/things"
)

func post(path, body string) cluster.Request {
	return cluster.Request{Method: http.MethodPost, Path: path, Body: body}
}

func ok(t *testing.T, c *cluster.Cluster, r cluster.Request) cluster.Answer {
	t.Helper()
	a := c.Ask(t, r)
	if a.Code >= 300 {
		t.Fatalf("%s %s: %d %.300s", r.Method, r.Path, a.Code, a.Body)
	}
	return a
}

// fillThings defines a type and makes n objects of it, which have a status that
// another field manager owns.
func fillThings(t *testing.T, c *cluster.Cluster, n int) {
	t.Helper()
	names := definitions.Names{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"}
	ok(t, c, post(definitionsOf(c), definitions.Definition(c, "layout.example.com", "v1", names)))
	eventually(t, "things are served", func() bool { return c.Ask(t, cluster.Request{Path: things}).Code == http.StatusOK })
	for i := range n {
		ok(t, c, post(things, fmt.Sprintf(`{"apiVersion":"layout.example.com/v1","kind":"Thing","metadata":{"name":"t%03d","labels":{"n":"%d"}},"spec":{"n":%d}}`, i, i%3, i)))
	}
	ok(t, c, cluster.Request{Method: http.MethodPatch, Path: things + "/t000?fieldManager=another", Type: "application/merge-patch+json", Body: `{"status":{"seen":true}}`})
}

func definitionsOf(c *cluster.Cluster) string {
	return "/apis/" + c.Vocabulary.Group("apiextensions.") + "/v1/customresourcedefinitions"
}

// listed is what a list of things shows, without their versions, and its own version.
func listed(t *testing.T, c *cluster.Cluster) (items []map[string]any, version string) {
	t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []map[string]any
	}
	ok(t, c, cluster.Request{Path: things}).Decode(t, &list)
	for _, item := range list.Items {
		delete(item["metadata"].(map[string]any), "resourceVersion")
	}
	return list.Items, list.Metadata.ResourceVersion
}

// age moves all custom objects to where earlier releases kept them.
func age(t *testing.T, etcd *clientv3.Client) (moved int) {
	t.Helper()
	found, err := etcd.Get(t.Context(), customTree, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		path := resource.Root + strings.TrimPrefix(string(kv.Key), customTree)
		if _, err := etcd.Put(t.Context(), path, string(kv.Value)); err != nil {
			t.Fatal(err)
		}
		if _, err := etcd.Delete(t.Context(), string(kv.Key)); err != nil {
			t.Fatal(err)
		}
	}
	return len(found.Kvs)
}

// count counts the keys with a prefix.
func count(t *testing.T, etcd *clientv3.Client, prefix string) int64 {
	t.Helper()
	found, err := etcd.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return found.Count
}

// shadow stores a definition over a built-in type as earlier releases have accepted
// it, perhaps with its deletion requested.
func shadow(t *testing.T, etcd *clientv3.Client, v vocabulary.Vocabulary, group string, names definitions.Names, version string, deleted bool) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(definitions.Definition(&cluster.Cluster{Vocabulary: v}, group, version, names)), &object); err != nil {
		t.Fatal(err)
	}
	meta, at := object["metadata"].(map[string]any), "2026-01-02T03:04:05Z"
	meta["uid"], meta["creationTimestamp"], meta["generation"] = "00000000-0000-0000-0000-00000000000"+fmt.Sprint(len(names.Plural)%10), at, 1
	conditions := []any{}
	for _, kind := range []string{"NamesAccepted", "Established"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": "Forged", "message": "", "lastTransitionTime": at})
	}
	if deleted {
		meta["deletionTimestamp"], meta["finalizers"] = at, []any{v.DefinitionFinalizer()}
		conditions = append(conditions, map[string]any{"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress", "message": "", "lastTransitionTime": at})
	}
	object["status"] = map[string]any{"acceptedNames": names, "storedVersions": []any{version}, "conditions": conditions}
	object["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "None"}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	offset, err := tree.MetadataOffset(raw)
	if err != nil {
		t.Fatal(err)
	}
	key := resource.Key{GroupResource: resource.GroupResource{Group: v.Group("apiextensions."), Resource: "customresourcedefinitions"}, Name: names.Plural + "." + group}
	record := resource.EncodeRecord(resource.Record{UID: meta["uid"].(string), At: offset, JSON: raw})
	if _, err := etcd.Put(t.Context(), key.Path(), string(record)); err != nil {
		t.Fatal(err)
	}
}

// offline calls a function with the etcd of a suite that has stopped.
func offline(t *testing.T, dir string, with func(etcd *clientv3.Client)) {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	with(server.Client)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFormerLayout starts the all-in-one on such data: custom objects are there as they
// were, and definitions over built-in types do no harm, whether they stay or go.
func TestFormerLayout(t *testing.T) {
	t.Parallel()
	const n = 50
	v := vocabulary.Platform()
	a := startAllInOne(t, v)
	fillThings(t, a.Cluster, n)
	before, version := listed(t, a.Cluster)
	leases := "/apis/" + v.Group("coordination.") + "/v1/namespaces/default/leases"
	ok(t, a.Cluster, post(leases, `{"metadata":{"name":"stays"}}`))
	requests := "/apis/" + v.Group("certificates.") + "/v1/certificatesigningrequests"
	a.process.stop(t)
	var builtIn int64
	bindings := resource.GroupResource{Group: v.Group("rbac.authorization."), Resource: "clusterrolebindings"}.Path()
	rbac := definitions.Names{Plural: "clusterrolebindings", Singular: "clusterrolebinding", Kind: "ClusterRoleBinding", ListKind: "ClusterRoleBindingList"}
	offline(t, a.Dir, func(etcd *clientv3.Client) {
		if moved := age(t, etcd); moved != n {
			t.Fatalf("%d objects were custom, want %d", moved, n)
		}
		shadow(t, etcd, v, v.Group("rbac.authorization."), rbac, "v9", true)
		shadow(t, etcd, v, v.Group("coordination."), definitions.Names{Plural: "leases", Singular: "lease", Kind: "Lease", ListKind: "LeaseList"}, "v1", false)
		shadow(t, etcd, v, v.Group("certificates."), definitions.Names{Plural: "certificatesigningrequests", Singular: "certificatesigningrequest",
			Kind: "CertificateSigningRequest", ListKind: "CertificateSigningRequestList"}, "v9", false)
		builtIn = count(t, etcd, bindings)
	})
	for _, when := range []string{"first", "second"} {
		a.start(t)
		after, now := listed(t, a.Cluster)
		if len(after) != n || !reflect.DeepEqual(after, before) {
			t.Errorf("%s start: %d objects, and before %d", when, len(after), len(before))
		}
		mustHaveExpired(t, a.Cluster, version)
		if a := a.Ask(t, cluster.Request{Path: things + "?watch=1&timeoutSeconds=1&resourceVersion=" + now}); a.Code != http.StatusOK || strings.Contains(a.Body, "ERROR") {
			t.Errorf("%s start: a watch from now on: %d %s", when, a.Code, a.Body)
		}
		mustNotBeServed(t, a.Cluster, "leases."+v.Group("coordination."))
		mustNotBeServed(t, a.Cluster, "certificatesigningrequests."+v.Group("certificates."))
		if a := a.Ask(t, cluster.Request{Path: strings.Replace(requests, "/v1/", "/v9/", 1)}); a.Code != http.StatusNotFound {
			t.Errorf("the version of a definition over a built-in type is served: %d", a.Code)
		}
		eventually(t, "a deleted definition over a built-in type is gone", func() bool {
			return a.Ask(t, cluster.Request{Path: definitionsOf(a.Cluster) + "/clusterrolebindings." + v.Group("rbac.authorization.")}).Code == http.StatusNotFound
		})
		ok(t, a.Cluster, cluster.Request{Path: leases + "/stays"})
		a.process.stop(t)
	}
	offline(t, a.Dir, func(etcd *clientv3.Client) {
		if left := count(t, etcd, resource.Root+"layout.example.com/"); left != 0 {
			t.Errorf("%d objects are left where they were", left)
		}
		if now := count(t, etcd, bindings); now < builtIn {
			t.Errorf("%d cluster role bindings, and before %d", now, builtIn)
		}
	})
	a.start(t)
	ok(t, a.Cluster, cluster.Request{Method: http.MethodDelete, Path: definitionsOf(a.Cluster) + "/leases." + v.Group("coordination.")})
	eventually(t, "the definition is gone", func() bool {
		return a.Ask(t, cluster.Request{Path: definitionsOf(a.Cluster) + "/leases." + v.Group("coordination.")}).Code == http.StatusNotFound
	})
	ok(t, a.Cluster, cluster.Request{Path: leases + "/stays"})
	ok(t, a.Cluster, cluster.Request{Method: http.MethodDelete, Path: definitionsOf(a.Cluster) + "/things.layout.example.com"})
	eventually(t, "the definition is gone", func() bool { return a.Ask(t, cluster.Request{Path: things}).Code == http.StatusNotFound })
	a.process.stop(t)
	offline(t, a.Dir, func(etcd *clientv3.Client) {
		if left := count(t, etcd, customTree); left != 0 {
			t.Errorf("%d custom objects have outlived their definition", left)
		}
	})
}

// mustHaveExpired requests revisions before the relocation.
func mustHaveExpired(t *testing.T, c *cluster.Cluster, version string) {
	t.Helper()
	if a := c.Ask(t, cluster.Request{Path: things + "?resourceVersionMatch=Exact&resourceVersion=" + version}); a.Code != http.StatusGone {
		t.Errorf("a list of before the move: %d %.200s", a.Code, a.Body)
	}
	if a := c.Ask(t, cluster.Request{Path: things + "?watch=1&timeoutSeconds=5&resourceVersion=" + version}); !strings.Contains(a.Body, `"code":410`) || strings.Contains(a.Body, "ADDED") {
		t.Errorf("a watch of before the move: %d %.200s", a.Code, a.Body)
	}
}

// mustNotBeServed checks the status of a definition.
func mustNotBeServed(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	var d struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason string }
		}
	}
	ok(t, c, cluster.Request{Path: definitionsOf(c) + "/" + name}).Decode(t, &d)
	states := map[string]string{}
	for _, condition := range d.Status.Conditions {
		states[condition.Type] = condition.Status
	}
	if states["NamesAccepted"] != "False" || states["Established"] != "False" {
		t.Errorf("%s: %+v", name, d.Status)
	}
}

// TestFormerLayoutManyDoors starts several front doors on such data at once, and ends
// them, as kill -9 does, while they move it.
func TestFormerLayoutManyDoors(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts nine processes")
	}
	t.Parallel()
	const n, rounds = 300, 3
	random, s := seeded(t), newSuite(t, vocabulary.Platform())
	doors := []program{}
	for _, p := range programs() {
		switch {
		case p.name == "frontdoor":
			for _, replica := range []string{"frontdoor", "frontdoor-2", "frontdoor-3"} {
				if p.replica = replica; replica != p.name {
					s.add(t, p.name, replica)
				}
				doors = append(doors, p)
			}
		case p.name == "admission": // without lifecycle, which is a client, there are no accounts
			p.args = []string{"--disable-admission-plugins=ServiceAccount"}
			s.start(t, p)
		case p.offer:
			s.start(t, p)
		}
	}
	etcd := s.etcdClient(t)
	s.start(t, doors[0])
	c := s.connect(t, "frontdoor")
	fillThings(t, c, n)
	before, version := listed(t, c)
	s.processes["frontdoor"].stop(t)
	for round := range rounds {
		age(t, etcd)
		for _, door := range doors {
			s.start(t, door)
		}
		eventually(t, "objects are moved", func() bool { return count(t, etcd, customTree) > int64(random.IntN(n)) })
		for _, door := range doors[round%3:] { // the first and the second only now and then
			s.processes[door.replica].kill()
			s.start(t, door)
		}
		for _, door := range doors {
			c := s.connect(t, door.replica)
			if after, _ := listed(t, c); !reflect.DeepEqual(after, before) {
				t.Fatalf("round %d, %s: %d objects, and before %d", round, door.replica, len(after), len(before))
			}
			mustHaveExpired(t, c, version)
		}
		if left := count(t, etcd, resource.Root+"layout.example.com/"); left != 0 {
			t.Errorf("round %d: %d objects are left where they were", round, left)
		}
		_, version = listed(t, c)
		for _, door := range doors {
			s.processes[door.replica].stop(t)
		}
	}
}

// etcdClient returns a client of the suite's etcd, or of another one of its servers.
func (s *suite) etcdClient(t *testing.T, server ...string) *clientv3.Client {
	t.Helper()
	files := s.issue(t, "checker", "checker")
	security, err := (transport.TLSInfo{TrustedCAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + s.addresses[append(server, "etcd")[0]]}, TLS: security, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}
