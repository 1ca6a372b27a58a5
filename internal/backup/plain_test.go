package backup

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/services/resource"
)

// holds reports whether a file in a folder contains a word.
func holds(t *testing.T, folder, word string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || found {
			return err
		}
		content, err := os.ReadFile(path)
		found = bytes.Contains(content, []byte(word))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPlainValuesAreRemoved: after the steps of docs/operations/encryption.md, neither the new data folder nor the new
// backup has a value that was stored before it was encrypted; without them both have it.
func TestPlainValuesAreRemoved(t *testing.T) {
	const word = "PLAIN-MARKER-OF-A-SECRET"
	dir, server := dataFolder(t)
	path := func(n int) string {
		return resource.Key{GroupResource: resource.GroupResource{Resource: "secrets"}, Namespace: "default", Name: fmt.Sprint("s", n)}.Path()
	}
	const objects = 500 // so many that they are still in free pages after a compaction
	var revision int64
	for _, text := range []string{word, "encrypted"} { // the objects are written again
		for n := range objects {
			answer, err := server.Client.Put(t.Context(), path(n), fmt.Sprintf(`{"uid":"u","at":1}`+"\n"+`{"data":%q}`, text))
			if err != nil {
				t.Fatal(err)
			}
			revision = answer.Header.Revision
		}
	}
	backups := t.TempDir()
	before, after := filepath.Join(backups, "before"), filepath.Join(backups, "after")
	mustRun(t, "backup", "create", before, "--data-dir="+dir)
	if !holds(t, dir, word) || !holds(t, before, word) {
		t.Error("the history has no plain value, so this test shows nothing")
	}
	if _, err := server.Client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, server)
	if !holds(t, filepath.Join(dir, "etcd", "member", "snap"), word) {
		t.Error("the compacted database has no plain value, so this test does not show that it must be defragmented")
	}
	database := backend.NewDefaultBackend(zap.NewNop(), filepath.Join(dir, "etcd", "member", "snap", "db"))
	if err := database.Defrag(); err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "backup", "create", after, "--data-dir="+dir)
	if holds(t, after, word) {
		t.Error("the new backup has the plain value")
	}
	restored := filepath.Join(t.TempDir(), "restored")
	mustRun(t, "restore", after, "--data-dir="+restored)
	again := open(t, restored)
	got, err := again.Client.Get(t.Context(), path(0))
	if err != nil || len(got.Kvs) != 1 || !bytes.Contains(got.Kvs[0].Value, []byte("encrypted")) {
		t.Errorf("restored %v, %v", got, err)
	}
	mustClose(t, again)
	if holds(t, restored, word) {
		t.Error("the new data folder has the plain value")
	}
}
