// Package worker provides the controllers of the suite with clients, informers and queues.
// Workers are clients of the public API like any other: over HTTPS, with a kubeconfig. Only
// workers use this package. It serves "What the service does" of the specification.
package worker

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// API is the kubeconfig of the workers in the process. A context with a worker's name is
// used by that worker only. No connection is made before the first request, so that
// workers may start before the front door.
var API = &run.Contract[*api.Config]{Name: "api", Flags: flags, Dial: dial}

// The client-side rate limit of one worker: far above its needs, and low enough to protect
// other clients.
const (
	requestsPerSecond = 200
	burst             = 400
)

func flags(fs *pflag.FlagSet) {
	fs.String("kubeconfig", "", "kubeconfig file of the workers, with the address of the API and their credentials")
	fs.StringSlice("controllers", []string{"*"}, "controllers to run: * for those on by default, -* for none, name to turn one on, -name to turn one off; the names: "+strings.Join(controllers, ", "))
}

func dial(_ context.Context, n *run.Node) (*api.Config, error) {
	path, _ := n.Flags.GetString("kubeconfig")
	if path == "" {
		return nil, run.Usagef("--kubeconfig is missing: %s is a client of the API", n.Service)
	}
	config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
	if err != nil {
		return nil, run.Usagef("--kubeconfig: %v", err)
	}
	watchCertificates(n, path, config)
	return config, nil
}

// watchCertificates lets the process watch the certificates of a kubeconfig: those in files
// of their own, and those in the file itself.
func watchCertificates(n *run.Node, path string, config *api.Config) {
	watch := func(kind expiry.Kind, entry, file string, data []byte) {
		switch {
		case len(data) > 0:
			n.WatchCertificates(expiry.Source{Kind: kind, Name: path + "#" + entry, Read: func() ([]byte, error) { return data, nil }})
		case file != "":
			n.WatchCertificates(expiry.Source{Kind: kind, Name: file})
		}
	}
	for name, user := range config.AuthInfos {
		watch(expiry.Own, name, user.ClientCertificate, user.ClientCertificateData)
	}
	for name, cluster := range config.Clusters {
		watch(expiry.Authorities, name, cluster.CertificateAuthority, cluster.CertificateAuthorityData)
	}
}

// Config returns the worker's client configuration, which the caller may modify.
func Config(ctx context.Context, n *run.Node) (*rest.Config, error) {
	if err := checkControllers(n); err != nil {
		return nil, err
	}
	file, err := API.Use(ctx, n)
	if err != nil {
		return nil, err
	}
	return configFor(file, n.Service)
}

// configFor returns the client configuration of one worker.
func configFor(file *api.Config, service string) (*rest.Config, error) {
	own := file.CurrentContext
	if file.Contexts[service] != nil {
		own = service
	}
	file = file.DeepCopy()
	credentials, err := takePlugin(file, own)
	if err != nil {
		return nil, run.Usagef("--kubeconfig: %v", err)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*file, own, nil, nil).ClientConfig()
	if err != nil {
		return nil, run.Usagef("--kubeconfig: %v", err)
	}
	if credentials != nil {
		if err := credentials.attach(config); err != nil {
			return nil, run.Usagef("--kubeconfig: %v", err)
		}
	}
	config.QPS, config.Burst = requestsPerSecond, burst
	config.UserAgent = "portico-" + service
	return config, nil
}
