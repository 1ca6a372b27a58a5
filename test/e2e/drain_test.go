package e2e

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

const (
	// longShutdown lets a process that waits for what does not end by itself wait for the 15 s
	// after which it ends in any case.
	longShutdown = "--shutdown-timeout=20s"
	// drained is less, and many times what a process needs to end.
	drained = 12 * time.Second
)

// TestDrain stops the whole process while a client watches: the watch ends
// as if it were complete, the process reports success, and what was written before
// is there when it starts again.
func TestDrain(t *testing.T) {
	t.Parallel()
	a := startAllInOne(t, vocabulary.Platform(), longShutdown)
	namespace := newNamespace(t, a.Client(t))
	watched, err := a.Send(t.Context(), cluster.Request{Path: "/api/v1/namespaces/" + namespace + "/configmaps?watch=1"})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Body.Close()
	if _, err := a.Client(t).Resource(configMaps()).Namespace(namespace).Create(t.Context(), configMap("last", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(watched.Body)
	for line := ""; !strings.Contains(line, `"last"`); {
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatalf("the watch ended before the write: %v", err)
		}
	}
	began := time.Now()
	a.process.stop(t)
	took := time.Since(began)
	if t.Logf("it took %v to end", took); took > drained {
		t.Errorf("that is more than %v", drained)
	}
	if status := a.process.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit status %d: %s", status, a.process.tail())
	}
	if rest, err := io.ReadAll(events); err != nil || strings.Contains(string(rest), `"ERROR"`) {
		t.Errorf("the watch ended with %v after %s", err, rest)
	}
	a.start(t)
	if read := a.Ask(t, cluster.Request{Path: "/api/v1/namespaces/" + namespace + "/configmaps/last"}); read.Code != http.StatusOK {
		t.Errorf("the last write is gone: %d %s", read.Code, read.Body)
	}
}
