package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// names returns what is in a folder.
func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// TestDated makes backups that are named by their time: of these, the newest are kept. A backup that fails removes none.
func TestDated(t *testing.T) {
	dir, server := dataFolder(t)
	defer mustClose(t, server)
	in := filepath.Join(t.TempDir(), "backups")
	file := func(path ...string) {
		t.Helper()
		name := filepath.Join(append([]string{in}, path...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file("2026-01-01T02-00-00Z", manifestFile)
	file("2026-01-02T02-00-00Z", manifestFile)
	file("2026-01-03T02-00-00Z", "etcd.db") // no backup
	file("monthly", manifestFile)
	file("2026-01-04T02-00-00Z") // no folder
	kept := names(t, in)
	if status, said := run(t, "backup", "create", in, "--dated", "--keep=1", "--etcd-servers=http://"+silent(t)); status != 1 {
		t.Fatalf("%d %s", status, said)
	}
	if after := names(t, in); strings.Join(after, " ") != strings.Join(kept, " ") {
		t.Errorf("a backup that has failed leaves %q", after)
	}
	said := mustRun(t, "backup", "create", in, "--dated", "--keep=2", "--data-dir="+dir)
	after := names(t, in)
	if len(after) != 5 || after[0] != "2026-01-02T02-00-00Z" || after[1] != "2026-01-03T02-00-00Z" || after[2] != "2026-01-04T02-00-00Z" || after[4] != "monthly" {
		t.Errorf("kept %q", after)
	}
	if !strings.Contains(said, "removed the old "+filepath.Join(in, "2026-01-01T02-00-00Z")) {
		t.Errorf("said %s", said)
	}
	mustRun(t, "backup", "verify", filepath.Join(in, after[3]))
}

// TestOneMember makes the members of a cluster one by one: they are of one cluster and at one revision, also when one is made
// again. What was there is kept once.
func TestOneMember(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	defer mustClose(t, server)
	folder, members := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	mustRun(t, "backup", "create", folder, "--data-dir="+dir)
	restore := func(name, at string, args ...string) (int, string) {
		return run(t, append([]string{"restore", folder, "--etcd-data-dir=" + filepath.Join(members, name), "--member=" + name, "--at=" + at,
			"--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2"}, args...)...)
	}
	const at, later = "2100-01-01T00:00:00Z", "2100-01-01T00:00:01+00:00"
	database := func(name string) string { return filepath.Join(members, name, "member", "snap", "db") }
	if err := errors.Join(os.MkdirAll(filepath.Join(members, "a"), 0o700), os.WriteFile(filepath.Join(members, "a", "old"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if status, said := restore("a", at); status != 1 || !strings.Contains(said, "is not empty") {
		t.Errorf("without --replace: %d %s", status, said)
	}
	for _, name := range []string{"a", "b", "a"} {
		if status, said := restore(name, at, "--replace"); status != 0 {
			t.Fatalf("%s: %d %s", name, status, said)
		}
	}
	if got := strings.Join(names(t, members), " "); got != "a a-before-2100-01-01T00-00-00Z b" {
		t.Errorf("there are %s", got)
	}
	if got := strings.Join(names(t, filepath.Join(members, "a-before-2100-01-01T00-00-00Z")), " "); got != "old" {
		t.Errorf("what was there is %s", got)
	}
	if got := strings.Join(names(t, filepath.Join(members, "a")), " "); got != "member" {
		t.Errorf("made %s", got)
	}
	of := func(name string) (ids string) {
		t.Helper()
		db, err := bolt.Open(database(name), 0o400, &bolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.View(func(tx *bolt.Tx) error {
			return tx.Bucket(schema.Members.Name()).ForEach(func(id, _ []byte) error { ids += string(id) + " "; return nil })
		}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if one, other := of("a"), of("b"); one != other || len(one) == 0 { // they depend on the token
		t.Errorf("the clusters have the members %s and %s", one, other)
	}
	a, first := inspect(t.Context(), database("a"), nil)
	b, second := inspect(t.Context(), database("b"), nil)
	if first != nil || second != nil || a.Revision != b.Revision || differences(a.Objects, b.Objects) != "" || len(a.Objects) == 0 {
		t.Errorf("%+v, %v and %+v, %v", a, first, b, second)
	}
	if status, said := restore("b", later, "--replace"); status != 0 {
		t.Fatalf("%d %s", status, said)
	}
	if again, err := inspect(t.Context(), database("b"), nil); err != nil || again.Revision <= b.Revision {
		t.Errorf("a later restoration is at %d, %v, and the first was at %d", again.Revision, err, b.Revision)
	}
	running, err := bolt.Open(database("a"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if status, said := restore("a", later, "--replace"); status != 1 || !strings.Contains(said, "an etcd runs on") {
		t.Errorf("of a member that runs: %d %s", status, said)
	}
}
