// Package legacytokens deletes the token Secrets that a service account lists, as those that were made with it,
// and that are not used: it marks them as invalid, so that authn refuses their tokens, and deletes them when
// they have been invalid for as long. Front doors record the uses of tokens. Secrets that pods name stay. It
// serves "Service account secret" and "Service account token flags" of the specification.
package legacytokens

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Name is the controller's name in --controllers.
const Name = "legacy-service-account-token-cleaner"

// Unused is how long a token is not used before it is invalid, by default.
const Unused = 365 * day

// The times between two searches for unused tokens. Dates are recorded by the day.
const (
	day      = 24 * time.Hour
	shortest = time.Second
)

// Config configures the controller.
type Config struct {
	// Client reads accounts and pods. Metadata reads and writes only the metadata of Secrets, so
	// that the controller has no tokens.
	Client, Metadata dynamic.Interface
	Vocabulary       vocabulary.Vocabulary
	// Unused is how long a token is not used before it is invalid, and how long it is invalid
	// before its Secret is deleted. It must be positive.
	Unused time.Duration
	Clock  clock.PassiveClock
	Log    *slog.Logger
}

// Controller cleans up the token Secrets of service accounts.
type Controller struct {
	Config
	accounts, pods, configMaps, secrets dynamic.NamespaceableResourceInterface
	// queue holds namespaces with unused tokens, and search.
	queue *worker.Queue[string]
}

// search is the key of the search for such namespaces.
const search = metav1.NamespaceAll

// New returns a controller. It reads nothing before it runs.
func New(config Config) *Controller {
	core := func(client dynamic.Interface, plural string) dynamic.NamespaceableResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: plural})
	}
	return &Controller{Config: config, queue: worker.NewQueue[string](Name, config.Log), accounts: core(config.Client, "serviceaccounts"),
		pods: core(config.Client, "pods"), configMaps: core(config.Client, "configmaps"), secrets: core(config.Metadata, "secrets")}
}

// Run runs the controller until ctx ends. It searches at once, and then every day, or as often
// as tokens may become unused.
func (c *Controller) Run(ctx context.Context) error {
	c.queue.Add(search)
	c.queue.Run(ctx, 1, func(ctx context.Context, namespace string) (time.Duration, error) {
		if namespace == search {
			return max(min(c.Unused, day), shortest), c.search(ctx)
		}
		return 0, c.clean(ctx, namespace)
	})
	return nil
}
