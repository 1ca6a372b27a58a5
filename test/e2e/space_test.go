package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// fill creates configmaps of half a MiB until one is refused, and returns their
// names and the refusal.
func fill(t *testing.T, a *allInOne) (names []string, refusal cluster.Answer) {
	t.Helper()
	body := strings.Repeat("x", 512<<10)
	for i := range 2_000 {
		name := fmt.Sprint("large", i)
		answer := a.Ask(t, cluster.Request{Method: "POST", Path: configMapPath,
			Body: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":%q}}`, name, body)})
		if answer.Code >= 300 {
			return names, answer
		}
		names = append(names, name)
	}
	t.Fatal("nothing was refused")
	return nil, cluster.Answer{}
}

// checkRefusal checks that there is no room, that reads go on all the same, and
// that it shows.
func checkRefusal(t *testing.T, a *allInOne, names []string, refusal cluster.Answer, why string) {
	t.Helper()
	var status cluster.Status
	refusal.Decode(t, &status)
	if refusal.Code != http.StatusInsufficientStorage || status.Reason != "InsufficientStorage" || !strings.Contains(status.Message, why) {
		t.Errorf("the refusal is %d %+v", refusal.Code, status)
	}
	if a.Ask(t, cluster.Request{Path: "/readyz"}).Code == http.StatusOK {
		t.Error("it is ready")
	}
	if code := a.Ask(t, cluster.Request{Path: "/livez"}).Code; code != http.StatusOK {
		t.Errorf("it is not alive: %d", code)
	}
	var list struct{ Items []json.RawMessage }
	a.Ask(t, cluster.Request{Path: configMapPath}).Decode(t, &list)
	if len(list.Items) < len(names) {
		t.Errorf("%d objects are there, of %d acknowledged", len(list.Items), len(names))
	}
}

// TestFullDatabase: when the quota is reached, writes fail with the reason, and after
// deletions of objects they succeed again.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.Platform(), "--quota-backend-bytes=33554432")
	names, refusal := fill(t, a)
	checkRefusal(t, a, names, refusal, "quota")
	for _, name := range names {
		if answer := a.Ask(t, cluster.Request{Method: "DELETE", Path: configMapPath + "/" + name}); answer.Code != http.StatusOK {
			t.Fatalf("deleting %s: %d %.300s", name, answer.Code, answer.Body)
		}
	}
	checkRoom(t, a)
}

// checkRoom waits until writes are accepted again and it is ready.
func checkRoom(t *testing.T, a *allInOne) {
	t.Helper()
	eventually(t, "there is room again", func() bool {
		answer := a.Ask(t, cluster.Request{Method: "POST", Path: configMapPath, Body: mapNamed("after")})
		return answer.Code < 300 || answer.Code == http.StatusConflict
	})
	eventually(t, "ready again", func() bool { return a.Ask(t, cluster.Request{Path: "/readyz"}).Code == http.StatusOK })
}

// TestFullDisk: other data fills the disk of the data directory. The process keeps
// running, and no acknowledged write is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400m"); err != nil {
		t.Skipf("no disk of a small size can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	a := startAllInOneIn(t, dir, vocabulary.Platform())
	ballast := filepath.Join(dir, "ballast")
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	if err := os.WriteFile(ballast, make([]byte, free-140<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	names, refusal := fill(t, a)
	checkRefusal(t, a, names, refusal, "disk")
	answer := a.Ask(t, cluster.Request{Method: "DELETE", Path: configMapPath + "/" + names[0]})
	if answer.Code != http.StatusOK {
		t.Errorf("deleting: %d %.300s", answer.Code, answer.Body)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	checkRoom(t, a)
	a.process.kill()
	a.start(t)
	for _, name := range names[1:] {
		if code := a.Ask(t, cluster.Request{Path: configMapPath + "/" + name}).Code; code != http.StatusOK {
			t.Errorf("%s was acknowledged, and after a restart it is %d", name, code)
		}
	}
}
