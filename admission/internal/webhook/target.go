package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// dialWithin bounds how long a connection may take to be made.
	dialWithin = 10 * time.Second
	// idleFor is how long an unused connection is kept.
	idleFor = 90 * time.Second
)

// target is where a webhook is, and how it is spoken to. The client keeps connections
// for as long as its configuration stays the same.
type target struct {
	url    string
	client *http.Client
	err    error // why it cannot be spoken to
}

// Resolver finds the host and port where a service of the cluster is reached.
type Resolver func(ctx context.Context, namespace, name string, port int32) (address string, err error)

func newTarget(c admissionregistrationv1.WebhookClientConfig, find Resolver) target {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.CABundle) {
			return target{err: errors.New("clientConfig.caBundle holds no certificate")}
		}
	}
	dialer := &net.Dialer{Timeout: dialWithin}
	transport := &http.Transport{
		TLSClientConfig: trust, TLSHandshakeTimeout: dialWithin, ForceAttemptHTTP2: true,
		DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleFor, MaxIdleConnsPerHost: 16,
	}
	t := target{client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	switch s := c.Service; {
	case c.URL != nil:
		t.url = *c.URL
	case s != nil:
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		// The certificate is for the service's name, wherever that leads.
		t.url = fmt.Sprintf("https://%s.%s.svc:%d", s.Name, s.Namespace, port)
		if s.Path != nil {
			t.url += "/" + strings.TrimPrefix(*s.Path, "/")
		}
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			address, err := find(ctx, s.Namespace, s.Name, port)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, address)
		}
	default:
		t.err = errors.New("clientConfig has neither url nor service")
	}
	return t
}

// ClusterServices resolves services as nodes of the cluster do: by their own address,
// or by the name that they stand for.
func ClusterServices(store services.Reader) Resolver {
	return func(ctx context.Context, namespace, name string, port int32) (string, error) {
		key := resource.Key{GroupResource: resource.GroupResource{Resource: "services"}, Namespace: namespace, Name: name}
		stored, err := store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
		if err != nil {
			return "", err
		}
		var service struct {
			Spec struct {
				Type, ClusterIP, ExternalName string
				Ports                         []struct{ Port int32 }
			}
		}
		if err := json.Unmarshal(stored.JSON, &service); err != nil {
			return "", fmt.Errorf("reading %s: %w", key, err)
		}
		to := strconv.Itoa(int(port))
		if service.Spec.Type == "ExternalName" {
			return net.JoinHostPort(service.Spec.ExternalName, to), nil
		}
		if ip := service.Spec.ClusterIP; ip == "" || ip == "None" {
			return "", fmt.Errorf("service %s/%s has no address", namespace, name)
		}
		for _, p := range service.Spec.Ports {
			if p.Port == port {
				return net.JoinHostPort(service.Spec.ClusterIP, to), nil
			}
		}
		return "", fmt.Errorf("service %s/%s has no port %d", namespace, name, port)
	}
}
