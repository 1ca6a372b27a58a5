// Package namespace empties namespaces that are deleted and then lets them go. It
// decides in which order contents are deleted and when nothing is left, and tells in
// the conditions of the namespace how far it is. It never deletes in a namespace
// that nobody has deleted, and waits for whoever holds objects with finalizers. It
// serves "Terminology" and "Two-phase deletion of a resource" of the
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
	"github.com/portico-platform/portico/services/kit/worker"
)

// Name is the controller's name in --controllers.
const Name = "namespace"

const (
	// workers is how many namespaces are emptied at a time.
	workers = 10
	// typesAtOnce is how many types of one namespace are emptied at a time.
	typesAtOnce = 8
)

// Config is what the controller works with.
type Config struct {
	Client    dynamic.Interface
	Metadata  dynamic.Interface
	Inventory *inventory.Source
	// Namespaces sees all namespaces; whoever made it runs it.
	Namespaces cache.SharedIndexInformer
	// Finalizer is the entry of spec.finalizers that stands for the contents.
	Finalizer string
	Clock     clock.PassiveClock
	Log       *slog.Logger
}

// Controller deletes what is in deleted namespaces.
type Controller struct {
	Config
	namespaces dynamic.ResourceInterface
	queue      *worker.Queue[string]
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

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.queue.Run(ctx, workers, c.reconcile)
	return nil
}
