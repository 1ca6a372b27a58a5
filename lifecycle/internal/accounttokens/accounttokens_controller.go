// Package accounttokens creates a token Secret for every service account, fills token
// Secrets that others create, and deletes them with their account, which no longer lists those
// that are gone. A token is valid as long as its Secret exists. Secrets of other types are not changed. It serves "Service
// account secret" and "Service account token flags" of the specification.
package accounttokens

import (
	"context"
	"errors"
	"log/slog"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tokenkey"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Name is the controller's name in --controllers.
const Name = "serviceaccount-token"

// workers is how many accounts, and how many secrets, are reconciled concurrently.
const workers = 5

// Config configures the controller.
type Config struct {
	Client     dynamic.Interface
	Vocabulary vocabulary.Vocabulary
	// Release is the emulated release. Since 1.24 an account gets no Secret that nobody has
	// created.
	Release release.Release
	Key     *tokenkey.Key
	// RootCertificate holds the CA certificates of the API, as PEM; it may be empty.
	RootCertificate []byte
	Log             *slog.Logger
}

// Controller maintains the token Secrets of service accounts.
type Controller struct {
	Config
	signer            jose.Signer
	accounts, secrets dynamic.NamespaceableResourceInterface
	// seenAccounts and seenSecrets are the informers; the latter watches only token
	// Secrets.
	seenAccounts, seenSecrets cache.SharedIndexInformer
	accountQueue              *worker.Queue[cache.ObjectName]
	secretQueue               *worker.Queue[token]
}

// token names a token secret and its account.
type token struct{ secret, account cache.ObjectName }

// ofAccount indexes token secrets by their account.
const ofAccount = "account"

// New returns a controller. It follows nothing before it runs.
func New(config Config) (*Controller, error) {
	core := func(plural string) dynamic.NamespaceableResourceInterface {
		return config.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: plural})
	}
	c := &Controller{Config: config, accounts: core("serviceaccounts"), secrets: core("secrets"),
		accountQueue: worker.NewQueue[cache.ObjectName](Name, config.Log), secretQueue: worker.NewQueue[token](Name, config.Log)}
	var err error
	c.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(config.Key.Algorithm),
		Key: jose.JSONWebKey{Key: config.Key.Signer, KeyID: config.Key.ID}}, nil)
	if err != nil {
		return nil, err
	}
	c.seenAccounts = worker.NewInformer(c.accounts, "")
	c.seenSecrets = worker.NewInformer(c.secrets, "type="+c.secretType())
	err = c.seenSecrets.AddIndexers(cache.Indexers{ofAccount: func(o any) ([]string, error) {
		return []string{c.accountOf(o.(*unstructured.Unstructured)).String()}, nil
	}})
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.accountQueue.Follow(c.seenAccounts, nameOf), c.accountQueue.Follow(c.seenSecrets, c.accountOf),
		c.secretQueue.Follow(c.seenSecrets, c.tokenOf))
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	go c.seenAccounts.RunWithContext(ctx)
	go c.seenSecrets.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.seenAccounts.HasSynced, c.seenSecrets.HasSynced) {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.secretQueue.Run(ctx, workers, c.reconcileSecret)
	}()
	c.accountQueue.Run(ctx, workers, c.reconcileAccount)
	<-ended
	return nil
}

func nameOf(o *unstructured.Unstructured) cache.ObjectName {
	return cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// accountOf returns the account of a token secret.
func (c *Controller) accountOf(secret *unstructured.Unstructured) cache.ObjectName {
	return cache.ObjectName{Namespace: secret.GetNamespace(), Name: secret.GetAnnotations()[c.annotation("name")]}
}

func (c *Controller) tokenOf(secret *unstructured.Unstructured) token {
	return token{secret: nameOf(secret), account: c.accountOf(secret)}
}

func (c *Controller) secretType() string {
	return c.Vocabulary.Qualified("", "service-account-token")
}

// annotation returns the annotation key of a token secret for the account's name or
// uid.
func (c *Controller) annotation(of string) string {
	return c.Vocabulary.Qualified("", "service-account."+of)
}

// seen returns an object from an informer; nil if it is not there.
func seen(informer cache.SharedIndexInformer, name cache.ObjectName) *unstructured.Unstructured {
	if found, exists, _ := informer.GetStore().GetByKey(name.String()); exists {
		return found.(*unstructured.Unstructured)
	}
	return nil
}
