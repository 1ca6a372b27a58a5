// Package customresources completes the deletion of CustomResourceDefinitions: it deletes
// their objects, waits until none is left and removes its finalizer. When a definition is
// gone or has other names, it triggers acceptance of the names of those that waited for them. It
// never deletes objects of a definition that is not being deleted, and waits for other
// finalizers. It serves "Two-phase deletion of a resource" of the specification.
package customresources

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/lifecycle/internal/sightings"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Name is the controller's name in --controllers.
const Name = "customresourcecleanup"

// workers is how many definitions are reconciled concurrently.
const workers = 5

// Config configures the controller.
type Config struct {
	Client     dynamic.Interface
	Metadata   dynamic.Interface // reads metadata only
	Vocabulary vocabulary.Vocabulary
	Clock      clock.PassiveClock
	Log        *slog.Logger
}

// Controller deletes the objects of deleted definitions.
type Controller struct {
	Config
	finalizer   string // for the objects
	definitions dynamic.ResourceInterface
	existing    cache.SharedIndexInformer
	queue       *worker.Queue[string]
	deletions   sightings.Deletions
	offers      offers
}

// New returns a controller.
func New(config Config) (*Controller, error) {
	definitions := config.Client.Resource(schema.GroupVersionResource{Group: config.Vocabulary.Group("apiextensions."), Version: "v1", Resource: "customresourcedefinitions"})
	c := &Controller{
		Config: config, finalizer: config.Vocabulary.DefinitionFinalizer(), definitions: definitions,
		existing: worker.NewInformer(inPages{definitions}, ""), queue: worker.NewQueue[string](Name, config.Log),
		offers: offers{since: map[string]time.Time{}},
	}
	if err := c.existing.SetTransform(withoutSchemas); err != nil {
		return nil, err
	}
	if err := c.followNames(); err != nil {
		return nil, err
	}
	return c, c.queue.Follow(c.existing, (*unstructured.Unstructured).GetName)
}

// inPages lists definitions page by page, each without its schemas: all of them at once would take many times what the
// controller keeps.
type inPages struct{ dynamic.ResourceInterface }

// definitionsPerPage is the size of these pages.
const definitionsPerPage = 100

// List implements dynamic.ResourceInterface.
func (p inPages) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = definitionsPerPage, "", ""
	var all []unstructured.Unstructured
	for {
		page, err := p.ResourceInterface.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			_, _ = withoutSchemas(&page.Items[i]) // cannot fail
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			page.Items = all
			return page, nil
		}
	}
}

// withoutSchemas removes from a definition what the controller does not read, which is nearly all of it. Definitions
// that it writes are read again before.
func withoutSchemas(definition any) (any, error) {
	if d, ok := definition.(*unstructured.Unstructured); ok {
		d.SetManagedFields(nil)
		d.SetAnnotations(nil)
		unstructured.RemoveNestedField(d.Object, "spec", "versions")
	}
	return definition, nil
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.existing.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.existing.HasSynced) {
		c.queue.Run(ctx, workers, c.reconcile)
	}
	return nil
}
