package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/worker"
)

// TestInformersLog: what an informer says while the API is away is a line of the process's log, in
// its format.
func TestInformersLog(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = write
	t.Cleanup(func() { os.Stderr = stderr })
	client, err := dynamic.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	informer := worker.NewInformer(client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "things"}), "")
	service := run.Service{Name: "signer", Start: func(_ context.Context, n *run.Node) error {
		worker.Go(n, "following things", func(ctx context.Context) error {
			informer.RunWithContext(ctx)
			return nil
		})
		return nil
	}}
	running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{service}}, []string{"--log-format=json"})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()
	_ = read.SetReadDeadline(time.Now().Add(time.Minute))
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		var line struct{ Level, Service, Msg, Err string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if line.Level == "ERROR" {
			if line.Service != "signer" || line.Err == "" {
				t.Errorf("%+v", line)
			}
			return
		}
	}
	t.Error("nothing was said", lines.Err())
}
