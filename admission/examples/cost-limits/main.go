// Command cost-limits is an admission service that refuses pods beyond the budget of their
// namespace. It follows all pods through an informer to know what a namespace costs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services/reload"
)

// readEvery is the minimum interval between two reads of the file of budgets.
const readEvery = time.Second

func main() { sdk.Main(service()) }

// limits is the state of the service.
type limits struct {
	kubeconfig, file string
	// client returns the client of the API; tests replace it.
	client func() (kubernetes.Interface, error)
	config *reload.Files[config]
	ledger *ledger
	synced func() bool
}

func service() sdk.Service {
	l := &limits{ledger: newLedger(time.Now)}
	l.client = l.connect
	return l.service()
}

func (l *limits) service() sdk.Service {
	return sdk.Service{
		Name: "cost-limits", Validate: l.validate, Start: l.start, Ready: l.ready,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&l.kubeconfig, "kubeconfig", l.kubeconfig, "`file` with the address of the API and the credentials of this service; empty: those of its pod")
			fs.StringVar(&l.file, "budgets", "budgets.yaml", "`file` with prices and budgets")
		},
	}
}

// connect returns the client of the flags.
func (l *limits) connect() (kubernetes.Interface, error) {
	load := rest.InClusterConfig
	if l.kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", l.kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return kubernetes.NewForConfig(config)
}

// start reads the file of budgets and starts the informer.
func (l *limits) start(ctx context.Context) (err error) {
	l.config, err = reload.Open(reload.Config[config]{What: "budgets", Paths: []string{l.file}, Parse: parseConfig, Every: readEvery, Log: slog.Default()})
	if err != nil {
		return fmt.Errorf("--budgets: %w", err)
	}
	client, err := l.client()
	if err != nil {
		return err
	}
	l.synced, err = follow(ctx, client, l.ledger)
	return err
}

// ready is not nil until all stored pods are in the ledger: before that, every namespace would
// seem to have its whole budget.
func (l *limits) ready() error {
	if !l.synced() {
		return errors.New("the pods are not yet known")
	}
	return nil
}
