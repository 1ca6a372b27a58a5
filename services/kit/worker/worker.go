// Package worker is how the workers of the suite reach the public API: over HTTPS,
// as clients like any other, with a kubeconfig that says where it is and who they
// are. It decides how a worker connects, watches and is switched on. It never
// decides what a worker does, and no other service uses it. It serves "What the
// service does" of the specification.
package worker

import (
	"context"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// API says where the public API is and who the workers of the process are to it:
// a context of the kubeconfig that has a worker's name is for that worker alone.
// Nothing is connected before the first request, so that workers may start before
// the front door.
var API = &run.Contract[*api.Config]{Name: "api", Flags: flags, Dial: dial}

// How fast one worker may ask: far above what it needs, below what hurts others.
const (
	requestsPerSecond = 200
	burst             = 400
)

func flags(fs *pflag.FlagSet) {
	fs.String("kubeconfig", "", "file that tells the workers where the API is and who they are")
	fs.StringSlice("controllers", []string{"*"}, "workers that run: * for those on by default, name to turn one on, -name to turn one off")
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

// Client returns the worker's own client of the API.
func Client(ctx context.Context, n *run.Node) (dynamic.Interface, error) {
	config, err := Config(ctx, n)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// Config returns what the worker's own clients are made with, for a worker that
// needs more than one. The caller may change it.
func Config(ctx context.Context, n *run.Node) (*rest.Config, error) {
	file, err := API.Use(ctx, n)
	if err != nil {
		return nil, err
	}
	return configFor(file, n.Service)
}

// configFor returns what the clients of one worker are made with.
func configFor(file *api.Config, service string) (*rest.Config, error) {
	own := file.CurrentContext
	if file.Contexts[service] != nil {
		own = service
	}
	file = file.DeepCopy()
	credentials, err := takePlugin(file, own)
	if err != nil {
		return nil, err
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

// Enabled reports whether --controllers turns a worker on. The last word about a
// name wins over *.
func Enabled(n *run.Node, name string, byDefault bool) bool {
	list, _ := n.Flags.GetStringSlice("controllers")
	for _, word := range slices.Backward(list) {
		switch word {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return byDefault && slices.Contains(list, "*")
}
