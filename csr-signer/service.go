// Package csrsigner is the worker that follows certificate signing requests for
// the built-in signers. It is a client of the public API and nothing else: whether
// a request may be approved or signed is decided there. It serves "Built-in
// signers" and "Certificate signing over the API" of the specification.
package csrsigner

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/run"
	"github.com/portico-platform/portico/services/worker"
)

// controller is the worker's name in --controllers; it is on by default.
const controller = "csrsigning"

// defaultDuration is how long certificates are valid: a year.
const defaultDuration = 365 * 24 * time.Hour

// Service describes csr-signer to the kit.
func Service() run.Service {
	return run.Service{
		Name:  "csr-signer",
		About: "issues certificates for certificate signing requests",
		Needs: []run.Dependency{worker.API},
		Flags: flags,
		Start: start,
	}
}

func flags(fs *pflag.FlagSet) {
	fs.String("cluster-signing-cert-file", "", "PEM file of the authority's certificate that signs for the built-in signers")
	fs.String("cluster-signing-key-file", "", "PEM file of its private key")
	fs.Duration("cluster-signing-duration", defaultDuration, "how long issued certificates are valid")
}

func start(ctx context.Context, n *run.Node) error {
	if err := checkFlags(n.Flags); err != nil {
		return err
	}
	client, err := worker.Client(ctx, n)
	if err != nil {
		return err
	}
	if !worker.Enabled(n, controller, true) {
		n.Log.Info("off: --controllers turns it off", "controller", controller)
		return nil
	}
	n.Log.Warn("certificate signing requests are followed and not signed yet")
	requests := client.Resource(schema.GroupVersionResource{
		Group: n.Vocabulary.Group("certificates."), Version: "v1", Resource: "certificatesigningrequests"})
	informer := worker.NewInformer(requests, "")
	n.Health.Add(worker.Ready(n.Service, informer))
	n.Go("following certificate signing requests", func(ctx context.Context) error {
		informer.RunWithContext(ctx)
		return nil
	})
	return nil
}

// checkFlags finds out at start what would otherwise fail with the first request.
func checkFlags(fs *pflag.FlagSet) error {
	duration, _ := fs.GetDuration("cluster-signing-duration")
	if duration <= 0 {
		return run.Usagef("--cluster-signing-duration: %v is not a time that certificates can be valid", duration)
	}
	certificate, _ := fs.GetString("cluster-signing-cert-file")
	key, _ := fs.GetString("cluster-signing-key-file")
	if certificate == "" && key == "" {
		return nil
	}
	if certificate == "" || key == "" {
		return run.Usagef("--cluster-signing-cert-file and --cluster-signing-key-file need each other")
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return run.Usagef("--cluster-signing-cert-file, --cluster-signing-key-file: %v", err)
	}
	return nil
}
