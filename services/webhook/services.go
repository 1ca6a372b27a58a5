package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// ClusterServices returns a Resolver that reads Services from the store and returns their
// cluster IP or external name.
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
