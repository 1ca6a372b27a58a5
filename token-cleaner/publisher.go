package tokencleaner

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// retryDelay is the pause before cluster-info is created again after an error.
const retryDelay = 2 * time.Second

// publisher creates cluster-info if it is missing, with the address and the CA of the API
// from the worker's own kubeconfig. An existing one is not changed.
type publisher struct {
	configMaps dynamic.ResourceInterface
	config     *rest.Config
	log        *slog.Logger
}

// run returns when cluster-info exists.
func (p *publisher) run(ctx context.Context) error {
	content, err := clusterConfig(p.config)
	if err != nil {
		p.log.Warn("cluster-info is not published", "error", err)
		return nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": clusterInfo}, "data": map[string]any{payload: content}}}
	for {
		if _, err := p.configMaps.Get(ctx, clusterInfo, metav1.GetOptions{}); err == nil {
			return nil
		}
		_, err := p.configMaps.Create(ctx, object, metav1.CreateOptions{})
		switch {
		case err == nil:
			p.log.Info("published cluster-info", "server", p.config.Host)
			return nil
		case apierrors.IsAlreadyExists(err), ctx.Err() != nil:
			return nil
		}
		p.log.Debug("cluster-info is not published yet", "error", err)
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return nil
		}
	}
}

// clusterConfig returns the client configuration in cluster-info: a cluster without a
// name, and no user.
func clusterConfig(config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return "", err
	}
	published := api.NewConfig()
	published.Clusters[""] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content, err := clientcmd.Write(*published)
	return string(content), err
}
