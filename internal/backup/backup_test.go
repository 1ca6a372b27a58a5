package backup

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/portico-platform/portico/internal/terminal"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/embedded"
)

// run runs a command line and returns its status and what it has said.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := Main(t.Context(), args, &out, &errs)
	return status, out.String() + errs.String()
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	status, said := run(t, args...)
	if status != 0 {
		t.Fatalf("%q: status %d: %s", args, status, said)
	}
	return said
}

func open(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func mustClose(t *testing.T, server *embedded.Server) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string) string {
	return resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: name}.Path()
}

func custom(name string) string {
	return resource.Key{GroupResource: resource.GroupResource{Group: "example.com", Resource: "things", Custom: true}, Name: name}.Path()
}

// fill writes five objects of two types, overwrites one and deletes one.
func fill(t *testing.T, client *clientv3.Client) (revision int64) {
	t.Helper()
	for _, path := range []string{configMap("a"), configMap("b"), configMap("c"), custom("x"), custom("y"), configMap("a"), "/portico/epoch"} {
		answer, err := client.Put(t.Context(), path, `{"uid":"u","at":1}`+"\n{}")
		if err != nil {
			t.Fatal(err)
		}
		revision = answer.Header.Revision
	}
	answer, err := client.Delete(t.Context(), configMap("c"))
	if err != nil {
		t.Fatal(err)
	}
	return max(revision, answer.Header.Revision)
}

// dataFolder makes the data folder of an all-in-one, and returns it with its etcd running.
func dataFolder(t *testing.T) (string, *embedded.Server) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"vocabulary": "k8s\n", "pki/serving.key": "secret"} {
		if err := putFile(dir, name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, open(t, dir)
}

func TestWrongCalls(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"a command is missing":               {"backup"},
		`no command "make"`:                  {"backup", "make"},
		"unknown flag: --size":               {"backup", "create", dir, "--size=4"},
		"0 arguments were given":             {"backup", "create"},
		"2 arguments were given":             {"backup", "verify", dir, dir},
		"either --data-dir or":               {"backup", "create", dir},
		"there is no etcd in it":             {"backup", "create", dir, "--data-dir=" + dir},
		"not encrypted":                      {"backup", "create", dir, "--etcd-servers=http://10.0.0.1:2379"},
		"belong together":                    {"restore", dir, "--etcd-data-dir=" + dir},
		"says what to make":                  {"restore", dir},
		"--override needs --etcd-data-dir":   {"restore", dir, "--data-dir=" + dir + "/new", "--override=events"},
		"/pods: cannot have an etcd":         {"backup", "create", dir, "--etcd-servers=http://localhost:1", "--etcd-servers-overrides=/pods#http://localhost:2"},
		"localhost:1 is a server of":         {"backup", "create", dir, "--etcd-servers=http://localhost:1", "--etcd-servers-overrides=/events#http://localhost:1"},
		"contradict each other":              {"backup", "create", dir, "--etcd-servers=http://localhost:1", "--main-etcd-only", "--etcd-servers-overrides=/events#http://localhost:2"},
		"--member and --at belong together":  {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=a=http://127.0.0.1:1", "--member=a"},
		"--replace needs --member":           {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=a=http://127.0.0.1:1", "--replace"},
		"--member needs --etcd-data-dir":     {"restore", dir, "--data-dir=" + dir, "--member=a", "--at=2026-01-01T00:00:00Z"},
		"--at: parsing time":                 {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=a=http://127.0.0.1:1", "--member=a", "--at=now"},
		`"b" is not in --initial-cluster`:    {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=a=http://127.0.0.1:1", "--member=b", "--at=2026-01-01T00:00:00Z"},
		"--keep: needs --dated":              {"backup", "create", dir, "--etcd-servers=http://localhost:1", "--keep=2"},
		"would go back":                      {"restore", dir, "--data-dir=" + dir, "--bump-revision=-1"},
		`"../a" is no name of a folder`:      {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=../a=http://127.0.0.1:1"},
		"--initial-cluster: URL scheme must": {"restore", dir, "--etcd-data-dir=" + dir, "--initial-cluster=a=nowhere"},
	} {
		if status, said := run(t, args...); status != 2 || !strings.Contains(said, want) {
			t.Errorf("%q: status %d, %s, want 2 and %q", args, status, said, want)
		}
	}
	for _, args := range [][]string{{"backup", "--help"}, {"restore", "--help"}, {"backup", "create", "--help"}} {
		if said := mustRun(t, args...); !strings.Contains(said, "portico backup create FOLDER") {
			t.Errorf("%q: %s", args, said)
		}
	}
}

// TestRoundTrip saves a data folder in use and one that is not, and restores both.
func TestRoundTrip(t *testing.T) {
	dir, server := dataFolder(t)
	revision := fill(t, server.Client)
	backups := t.TempDir()
	mustRun(t, "backup", "create", filepath.Join(backups, "running"), "--data-dir="+dir)
	mustClose(t, server)
	mustRun(t, "backup", "create", filepath.Join(backups, "stopped"), "--data-dir="+dir)
	for _, name := range []string{"running", "stopped"} {
		folder := filepath.Join(backups, name)
		said := mustRun(t, "backup", "verify", folder)
		if !strings.Contains(said, "2 configmaps\n") || !strings.Contains(said, "2 things.example.com (custom)\n") || !strings.Contains(said, "4 objects of 2 types") {
			t.Errorf("%s: %s", name, said)
		}
		mustBePrivate(t, folder)
		restored := filepath.Join(t.TempDir(), "restored")
		mustRun(t, "restore", folder, "--data-dir="+restored, "--bump-revision=5000")
		mustBePrivate(t, restored)
		if content, err := os.ReadFile(filepath.Join(restored, "pki", "serving.key")); err != nil || string(content) != "secret" {
			t.Errorf("%s: the key is %q, %v", name, content, err)
		}
		again := open(t, restored)
		got, err := again.Client.Get(t.Context(), resource.Root, clientv3.WithPrefix())
		if err != nil || len(got.Kvs) != 4 {
			t.Fatalf("%s: restored %v, %v", name, got, err)
		}
		if got.Header.Revision < revision+5000 {
			t.Errorf("%s: goes on at %d after %d", name, got.Header.Revision, revision)
		}
		if _, err := again.Client.Get(t.Context(), "/", clientv3.WithRev(revision)); err == nil {
			t.Errorf("%s: the lost history can be read", name)
		}
		mustClose(t, again)
	}
}

// mustBePrivate looks for files that others than the owner can use. etcd's own are in folders
// that are closed to others.
func mustBePrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 && (info.IsDir() || !strings.Contains(path, "/member/")) {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCompactedDeletions saves a database whose newest revisions compaction has removed.
func TestCompactedDeletions(t *testing.T) {
	dir, server := dataFolder(t)
	for i := range 10 {
		if _, err := server.Client.Put(t.Context(), configMap(fmt.Sprint(i)), `{"uid":"u","at":1}`+"\n{}"); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := server.Client.Delete(t.Context(), resource.Root, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	revision := answer.Header.Revision
	if _, err := server.Client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	folder, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	mustRun(t, "backup", "create", folder, "--data-dir="+dir)
	mustClose(t, server)
	mustRun(t, "restore", folder, "--data-dir="+restored, "--bump-revision=1")
	again := open(t, restored)
	defer mustClose(t, again)
	if got, err := again.Client.Get(t.Context(), "/"); err != nil || got.Header.Revision != revision+1 {
		t.Errorf("goes on at %v after %d, %v", got, revision, err)
	}
}

// TestMembers makes data folders of a cluster: they belong to one cluster, and to another one
// than those of another restoration.
func TestMembers(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	folder := filepath.Join(t.TempDir(), "backup")
	mustRun(t, "backup", "create", folder, "--data-dir="+dir)
	mustClose(t, server)
	members := filepath.Join(t.TempDir(), "members")
	mustRun(t, "restore", folder, "--etcd-data-dir="+members, "--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2")
	var revisions []int64
	for _, name := range []string{"a", "b"} {
		found, err := inspect(t.Context(), filepath.Join(members, name, "member", "snap", "db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, found.Revision)
	}
	if revisions[0] != revisions[1] || revisions[0] < bumpLeast {
		t.Errorf("members go on at %v", revisions)
	}
	if status, said := run(t, "restore", folder, "--etcd-data-dir="+members, "--initial-cluster=a=http://127.0.0.1:1"); status != 1 || !strings.Contains(said, "is not empty") {
		t.Errorf("restored over another: %d %s", status, said)
	}
}

// TestDamage changes a backup in many ways: none is restored, and nothing is left of it.
func TestDamage(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	mustClose(t, server)
	good := filepath.Join(t.TempDir(), "backup")
	mustRun(t, "backup", "create", good, "--data-dir="+dir)
	change := func(name string, edit func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			path := filepath.Join(folder, name)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, edit(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(old, with string) func([]byte) []byte {
		return func(content []byte) []byte { return bytes.Replace(content, []byte(old), []byte(with), 1) }
	}
	for want, damage := range map[string]func(*testing.T, string){
		"etcd.db is not as it was saved":         change(snapshotFile, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"SHA-256 is":                             change(snapshotFile, func(b []byte) []byte { return b[:len(b)/2] }),
		"home/pki/serving.key is not":            change("home/pki/serving.key", replace("secret", "other")),
		"configmaps: 2 and not 3":                change(manifestFile, replace(`"configmaps": 2`, `"configmaps": 3`)),
		"version 2 of the format":                change(manifestFile, replace(`"version": 1`, `"version": 2`)),
		"unknown field":                          change(manifestFile, replace(`"version"`, `"size": 1, "version"`)),
		"outside of the backup":                  change(manifestFile, replace(`home/vocabulary`, `../vocabulary`)),
		"is not a backup":                        func(_ *testing.T, folder string) { _ = os.Remove(filepath.Join(folder, manifestFile)) },
		"home/vocabulary: no such file":          func(_ *testing.T, folder string) { _ = os.Remove(filepath.Join(folder, "home/vocabulary")) },
		"etcd.db is missing in the list of file": change(manifestFile, replace(`"etcd.db"`, `"etcd.old"`)),
	} {
		folder, into := filepath.Join(t.TempDir(), "backup"), t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		damage(t, folder)
		for _, args := range [][]string{{"backup", "verify", folder}, {"restore", folder, "--data-dir=" + filepath.Join(into, "data")}} {
			if status, said := run(t, args...); status != 1 || !strings.Contains(said, want) {
				t.Errorf("%q: status %d, %s, want 1 and %q", args, status, said, want)
			}
		}
		if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", want, left, err)
		}
	}
}

// TestNothingIsOverwritten tries folders that are in use.
func TestNothingIsOverwritten(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	defer mustClose(t, server)
	folder := filepath.Join(t.TempDir(), "backup")
	mustRun(t, "backup", "create", folder, "--data-dir="+dir)
	for _, args := range [][]string{{"backup", "create", folder, "--data-dir=" + dir}, {"restore", folder, "--data-dir=" + dir}} {
		if status, said := run(t, args...); status != 1 || !strings.Contains(said, "is not empty") {
			t.Errorf("%q: status %d, %s", args, status, said)
		}
	}
	mustRun(t, "backup", "verify", folder)
	if _, err := server.Client.Put(t.Context(), configMap("later"), ""); err != nil {
		t.Error(err)
	}
}

// TestSkip restores one backup again and again: each goes on beyond what the one before can have reached.
func TestSkip(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, r := &manifest{Created: made}, &restoration{}
	before := int64(0)
	for _, age := range []time.Duration{0, time.Second, time.Hour, 365 * 24 * time.Hour} {
		bump, err := r.skip(m, made.Add(age))
		if err != nil || bump < before+bumpPerSecond*int64(age.Seconds())/2 || bump < bumpLeast {
			t.Errorf("%v: %d after %d, %v", age, bump, before, err)
		}
		before = bump
	}
	if _, err := r.skip(m, made.Add(-time.Hour)); err == nil {
		t.Error("a backup of tomorrow is taken")
	}
}

// serve starts an etcd of Events with two objects and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.LogOutputs = t.TempDir(), "panic", []string{"/dev/null"}
	c.ListenPeerUrls, c.ListenClientUrls = nil, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.TickMs, c.ElectionMs = 10, 100
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	for _, name := range []string{"a", "b"} {
		event := resource.Key{GroupResource: resource.GroupResource{Resource: "events"}, Namespace: "default", Name: name}
		if _, err := v3client.New(server.Server).Put(t.Context(), event.Path(), `{"uid":"u","at":1}`+"\n{}"); err != nil {
			t.Fatal(err)
		}
	}
	return "http://" + server.Clients[0].Addr().String()
}

// TestOverrides saves two etcds in one backup and restores each on its own: the one of Events goes on after
// its own revision. A backup without one of them is not made, and damage of one is damage of all.
func TestOverrides(t *testing.T) {
	dir, server := dataFolder(t)
	revision := fill(t, server.Client)
	defer mustClose(t, server)
	flag := "--etcd-servers-overrides=/events#" + serve(t)
	backups := t.TempDir()
	folder := filepath.Join(backups, "backup")
	if status, said := run(t, "backup", "create", folder, "--data-dir="+dir, flag+",batch/jobs#http://127.0.0.1:1"); status != 1 || !strings.Contains(said, "etcd jobs.batch: ") {
		t.Errorf("without the etcd of jobs: %d %s", status, said)
	}
	if left, err := os.ReadDir(backups); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for said, words := range map[string][]string{
		mustRun(t, "backup", "create", folder, "--data-dir="+dir, flag):                                     {"4 objects of 2 types; etcd events, revision 3: 2 objects of 1 types", "not of one moment"},
		mustRun(t, "backup", "verify", folder):                                                              {"2 configmaps\n", "etcd events:\n       2 events\n"},
		mustRun(t, "restore", folder, "--data-dir="+filepath.Join(backups, "home"), "--bump-revision=1000"): {"restored the main etcd", "--override=events"},
		mustRun(t, "restore", folder, "--override=events", "--etcd-data-dir="+filepath.Join(backups, "events"), "--initial-cluster=e=http://127.0.0.1:1", "--bump-revision=1000"): {"restored etcd events", "after revision 1003"},
	} {
		for _, word := range words {
			if !strings.Contains(said, word) {
				t.Errorf("no %q in %s", word, said)
			}
		}
	}
	for data, want := range map[string]contents{
		"home/etcd": {Revision: revision + 1000, Objects: map[string]int{"configmaps": 2, "things.example.com (custom)": 2}},
		"events/e":  {Revision: 1003, Objects: map[string]int{"events": 2}},
	} {
		found, err := inspect(t.Context(), filepath.Join(backups, data, "member", "snap", "db"), nil)
		if err != nil || found.Revision != want.Revision || differences(found.Objects, want.Objects) != "" {
			t.Errorf("%s holds %+v, %v, want %+v", data, found, err, want)
		}
	}
	if status, said := run(t, "restore", folder, "--override=leases", "--etcd-data-dir="+filepath.Join(backups, "leases"), "--initial-cluster=e=http://127.0.0.1:1"); status != 2 || !strings.Contains(said, "but these: events") {
		t.Errorf("restored an etcd that is not there: %d %s", status, said)
	}
	if err := os.Truncate(filepath.Join(folder, "etcd-events.db"), 1000); err != nil {
		t.Fatal(err)
	}
	if status, said := run(t, "restore", folder, "--data-dir="+filepath.Join(backups, "damaged")); status != 1 || !strings.Contains(said, "etcd-events.db is not as it was saved") {
		t.Errorf("restored a damaged backup: %d %s", status, said)
	}
}

// TestRecordedOverrides: a backup without what other etcds store is made only on request, and says so.
func TestRecordedOverrides(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	defer mustClose(t, server)
	record := func(overrides ...etcd.Override) {
		t.Helper()
		if err := etcd.Record(t.Context(), server.Client, overrides); err != nil {
			t.Fatal(err)
		}
	}
	events, leases := resource.GroupResource{Resource: "events"}, resource.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	ofEvents := serve(t)
	record(etcd.Override{Types: []resource.GroupResource{events}, Servers: []string{"https://events-1:2379"}}, etcd.Override{Types: []resource.GroupResource{leases}, Servers: []string{"https://leases-1:2379"}})
	parent := t.TempDir()
	create := func(name string, args ...string) (int, string) {
		return run(t, append([]string{"backup", "create", filepath.Join(parent, name), "--data-dir=" + dir}, args...)...)
	}
	for want, args := range map[string][]string{
		"stores /events, coordination.k8s.io/leases in other etcds":                                                 nil,
		"'--etcd-servers-overrides=/events#https://events-1:2379,coordination.k8s.io/leases#https://leases-1:2379'": {},
		"stores coordination.k8s.io/leases in other etcds":                                                          {"--etcd-servers-overrides=/events#" + ofEvents},
	} {
		if status, said := create("none", args...); status != 1 || !strings.Contains(said, want) {
			t.Errorf("%q: %d %s, want %s", args, status, said, want)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if status, said := create("alone", "--main-etcd-only"); status != 0 || !strings.Contains(said, "without /events, coordination.k8s.io/leases, which another etcd stores") {
		t.Errorf("the main etcd alone: %d %s", status, said)
	}
	if said := mustRun(t, "restore", filepath.Join(parent, "alone"), "--data-dir="+filepath.Join(parent, "restored")); !strings.Contains(said, "is without /events, coordination.k8s.io/leases") {
		t.Errorf("restored: %s", said)
	}
	record(etcd.Override{Types: []resource.GroupResource{events}, Servers: []string{"https://events-1:2379"}})
	if status, said := create("both", "--etcd-servers-overrides=/events#"+ofEvents); status != 0 {
		t.Errorf("with the etcd of Events: %d %s", status, said)
	}
	record()
	if status, said := create("again"); status != 0 || strings.Contains(said, "without") {
		t.Errorf("after the override was removed: %d %s", status, said)
	}
}

// TestBars saves and restores in a terminal: there are bars, and nothing of them is left. TestRoundTrip
// and others read what is written elsewhere.
func TestBars(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	mustClose(t, server)
	user, program := terminal.Open(t)
	folder := filepath.Join(t.TempDir(), "backup")
	status := make(chan int, 2)
	go func() {
		status <- Main(t.Context(), []string{"backup", "create", folder, "--data-dir=" + dir}, io.Discard, program)
		status <- Main(t.Context(), []string{"restore", folder, "--data-dir=" + filepath.Join(t.TempDir(), "restored")}, io.Discard, program)
		_ = program.Close()
	}()
	var recorded strings.Builder
	_, _ = io.Copy(&recorded, user) // ends with an error when the other end is closed
	if first, second := <-status, <-status; first != 0 || second != 0 {
		t.Fatalf("%d %d %s", first, second, recorded.String())
	}
	for _, label := range []string{"snapshot ", "checking [", "restoring portico [", " MiB"} {
		if !strings.Contains(recorded.String(), label) {
			t.Errorf("no %q in %q", label, recorded.String())
		}
	}
	if !strings.HasSuffix(recorded.String(), "\r\x1b[K") {
		t.Errorf("something is left: %q", recorded.String())
	}
}

// FuzzManifest: a manifest that is accepted is of this version of the format, and names the snapshot.
func FuzzManifest(f *testing.F) {
	folder := f.TempDir()
	f.Add([]byte(`{"version":1,"files":{"etcd.db":"00"},"revision":7,"objects":{"pods":1},"created":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(folder, manifestFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := readManifest(folder); err == nil && (m.Version != formatVersion || m.Files[snapshotFile] == "" || m.String() == "") {
			t.Errorf("%q: %+v", content, m)
		}
	})
}
