// Package roleaggregation writes into each aggregated ClusterRole the rules of the roles that it
// aggregates, for clients that read roles. Decisions do not depend on it: authorization gathers
// these rules itself, and ignores those that are stored in an aggregated role. It serves
// "Authorization notes" of the specification.
package roleaggregation

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Name is the name of the controller in --controllers.
const Name = "clusterrole-aggregation"

// Controller writes the rules of aggregated roles.
type Controller struct {
	roles dynamic.ResourceInterface
	seen  cache.SharedIndexInformer
	// queue has one key: a change of any role may change the rules of several.
	queue *worker.Queue[struct{}]
}

// New returns a controller. It follows nothing before it runs.
func New(client dynamic.Interface, v vocabulary.Vocabulary, log *slog.Logger) (*Controller, error) {
	roles := client.Resource(schema.GroupVersionResource{Group: v.Group("rbac.authorization."), Version: "v1", Resource: "clusterroles"})
	c := &Controller{roles: roles, seen: worker.NewInformer(roles, ""), queue: worker.NewQueue[struct{}](Name, log)}
	return c, c.queue.Follow(c.seen, func(*unstructured.Unstructured) struct{} { return struct{}{} })
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.seen.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), c.seen.HasSynced) {
		c.queue.Run(ctx, 1, c.reconcile)
	}
	return nil
}
