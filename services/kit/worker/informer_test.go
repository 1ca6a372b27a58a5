package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/worker"
)

// stderr returns what the process writes to its standard error during a test.
func stderr(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = write
	t.Cleanup(func() {
		os.Stderr = before
		_ = write.Close()
		_ = read.Close()
	})
	_ = read.SetReadDeadline(time.Now().Add(time.Minute))
	return read
}

// TestTheEndIsNoError: the watches that end with the process, or because their type is not served, are not logged as errors.
func TestTheEndIsNoError(t *testing.T) {
	read, logged := stderr(t), make(chan struct{})
	service := run.Service{Name: "signer", Start: func(_ context.Context, n *run.Node) error {
		worker.Go(n, "following things", func(ctx context.Context) error {
			klog.FromContext(ctx).Error(apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, ""), "not served")
			klog.FromContext(ctx).Error(nil, "before the end")
			close(logged)
			<-ctx.Done()
			klog.FromContext(ctx).WithValues("a", 1).WithName("b").Error(nil, "after the end")
			return nil
		})
		return nil
	}}
	running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{service}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-logged
	running.Stop()
	var before bool
	for lines := bufio.NewScanner(read); lines.Scan() && !strings.Contains(lines.Text(), "stopped"); {
		before = before || strings.Contains(lines.Text(), "before the end")
		if strings.Contains(lines.Text(), "after the end") || strings.Contains(lines.Text(), "not served") {
			t.Error(lines.Text())
		}
	}
	if !before {
		t.Error("nothing was logged before the end")
	}
}

// TestInformersLog: what an informer says while the API is away is a line of the process's log, in
// its format.
func TestInformersLog(t *testing.T) {
	read := stderr(t)
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
