package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	portico "github.com/portico-platform/portico/testing"
)

// startFlag makes the program start control planes instead of measuring, so that the first
// start is that of a new process, as in a test.
const (
	startFlag  = "start"
	inProcess  = "in-process"
	withAssets = "assets"
)

// environment is what both environments have.
type environment interface {
	Start() (*rest.Config, error)
	Stop() error
}

// printStarts starts two control planes, one after the other, and prints how many seconds each
// took until it had a first object.
func printStarts(ctx context.Context, inProcess bool) error {
	for range 2 {
		var e environment = &envtest.Environment{}
		if inProcess {
			e = &portico.Environment{}
		}
		elapsed, err := start(ctx, e)
		if err != nil {
			return err
		}
		fmt.Println(elapsed.Seconds())
	}
	return nil
}

func start(ctx context.Context, e environment) (time.Duration, error) {
	began := time.Now()
	config, err := e.Start()
	if err != nil {
		return 0, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	elapsed := time.Since(began)
	return elapsed, e.Stop()
}
