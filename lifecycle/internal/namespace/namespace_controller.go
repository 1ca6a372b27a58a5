// Package namespace deletes the contents of namespaces that are being deleted, waits until
// nothing is left and removes its finalizer. It reports its progress in the conditions of
// the namespace. It never deletes in a namespace that is not being deleted, and waits for
// other finalizers. It serves "Terminology" and "Two-phase deletion of a resource" of the
// specification.
package namespace

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/inventory"
	"github.com/portico-platform/portico/lifecycle/internal/sightings"
	"github.com/portico-platform/portico/services/kit/worker"
)

// Name is the controller's name in --controllers.
const Name = "namespace"

const (
	// workers is how many namespaces are emptied concurrently.
	workers = 10
	// typesAtOnce is how many types of one namespace are emptied concurrently.
	typesAtOnce = 8
)

// Config configures the controller.
type Config struct {
	Client    dynamic.Interface
	Metadata  dynamic.Interface
	Inventory *inventory.Source
	// Namespaces is an informer of all namespaces, which its creator runs.
	Namespaces cache.SharedIndexInformer
	// Finalizer is the entry of spec.finalizers for the contents.
	Finalizer string
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Controller deletes the contents of deleted namespaces.
type Controller struct {
	Config
	namespaces dynamic.ResourceInterface
	queue      *worker.Queue[string]
	deletions  sightings.Deletions
}

// New returns a controller that follows the namespaces of its configuration.
func New(config Config) (*Controller, error) {
	c := &Controller{
		Config:     config,
		namespaces: config.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}),
		queue:      worker.NewQueue[string](Name, config.Log),
	}
	return c, c.queue.Follow(config.Namespaces, (*unstructured.Unstructured).GetName)
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.queue.Run(ctx, workers, c.reconcile)
	return nil
}
