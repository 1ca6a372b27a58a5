package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// audienceVerb is what a node needs to request tokens for an audience that the pod does not
// name. The audience is the resource, the service account the name.
const audienceVerb = "request-serviceaccounts-token-audience"

// migrated are the CSI drivers of volumes that nodes no longer mount themselves.
var migrated = map[string]string{
	"awsElasticBlockStore": "ebs.csi.aws.com", "azureDisk": "disk.csi.azure.com", "azureFile": "file.csi.azure.com", "cinder": "cinder.csi.openstack.org",
	"gcePersistentDisk": "pd.csi.storage.gke.io", "portworxVolume": "pxd.portworx.com", "vsphereVolume": "csi.vsphere.vmware.com",
}

// audience lets a node request tokens of a pod for the audiences that its volumes need.
func (p Plugin) audience(ctx context.Context, r *review.Review, audiences []string, pod object) error {
	wanted := ""
	switch len(audiences) {
	case 0:
	case 1:
		wanted = audiences[0]
	default:
		return r.Forbid("node may only request 0 or 1 audiences")
	}
	found, err := p.needs(ctx, r.Namespace, pod, wanted)
	switch {
	case found:
		return nil
	case err != nil:
		return r.Forbid("error validating audience %q: %v", wanted, err)
	}
	decision, err := p.Authz.Authorize(ctx, services.Attributes{User: r.User, Verb: audienceVerb, Version: "v1", Resource: wanted, Namespace: r.Namespace, Name: r.Name})
	if err != nil {
		return err
	}
	if !decision.Allowed {
		return r.Forbid("audience %q not found in pod spec volume, %s is not authorized to request tokens for this audience", wanted, r.User.Name)
	}
	return nil
}

// needs reports whether a volume of a pod needs tokens for an audience. If none is known to,
// the error is of those that are not known.
func (p Plugin) needs(ctx context.Context, namespace string, pod object, audience string) (bool, error) {
	var failures []error
	for _, v := range pod.Spec.Volumes {
		for _, source := range tree.Objects(v, "projected", "sources") {
			if token := tree.Child(source, "serviceAccountToken"); token != nil && tree.Text(token, "audience") == audience {
				return true, nil
			}
		}
		driver, err := p.driverOf(ctx, namespace, pod.Metadata.Name, v)
		if err == nil && driver != "" {
			var found bool
			if found, err = p.requests(ctx, driver, audience); found {
				return true, nil
			}
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return false, errors.Join(failures...)
}

// driverOf returns the CSI driver of a volume of a pod; "" if it has none.
func (p Plugin) driverOf(ctx context.Context, namespace, pod string, volume map[string]any) (string, error) {
	claim := tree.Text(volume, "persistentVolumeClaim", "claimName")
	if tree.Child(volume, "ephemeral", "volumeClaimTemplate") != nil {
		claim = pod + "-" + tree.Text(volume, "name")
	}
	if claim == "" {
		return driver(volume), nil
	}
	stored, err := p.read(ctx, resource.Key{GroupResource: resource.GroupResource{Resource: "persistentvolumeclaims"}, Namespace: namespace, Name: claim})
	if err != nil {
		return "", err
	}
	stored, err = p.read(ctx, resource.Key{GroupResource: resource.GroupResource{Resource: "persistentvolumes"}, Name: tree.Text(stored, "spec", "volumeName")})
	if err != nil {
		return "", err
	}
	return driver(tree.Child(stored, "spec")), nil
}

// driver returns the CSI driver of the source of a volume; "" if it has none.
func driver(source map[string]any) string {
	for kind, name := range migrated {
		if source[kind] != nil {
			return name
		}
	}
	return tree.Text(source, "csi", "driver")
}

// requests reports whether a CSI driver requests tokens for an audience.
func (p Plugin) requests(ctx context.Context, driver, audience string) (bool, error) {
	stored, err := p.read(ctx, resource.Key{GroupResource: resource.GroupResource{Group: p.Vocabulary.Group("storage."), Resource: "csidrivers"}, Name: driver})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(tree.Objects(stored, "spec", "tokenRequests"), func(r map[string]any) bool { return tree.Text(r, "audience") == audience }), nil
}

// read reads an object as it is now.
func (p Plugin) read(ctx context.Context, key resource.Key) (map[string]any, error) {
	stored, err := p.Store.Get(ctx, services.GetRequest{Key: key})
	if err != nil {
		return nil, err
	}
	object, err := tree.Decode(stored.JSON)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return object, nil
}
