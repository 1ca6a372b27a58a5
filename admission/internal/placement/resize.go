package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// Resize rejects pod resizes that exceed the node's allocatable resources, or whose node does not run Linux.
type Resize struct {
	Store   services.Reader
	Counter quota.Counter
	OS      string // the label with the operating system of a node
}

// Validate returns Forbidden (403) for a resize that the node of the pod does not allow. One that leaves the
// spec as it is succeeds, whatever the node is now.
func (p Resize) Validate(ctx context.Context, r *review.Review) error {
	if !r.Is(services.OperationUpdate, "", "pods/resize") {
		return nil
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	old, err := tree.Decode(r.OldObject)
	if err != nil {
		return err
	}
	name := tree.Text(pod, "spec", "nodeName")
	if name == "" || tree.Equal(pod["spec"], old["spec"]) {
		return nil
	}
	stored, err := p.Store.Get(ctx, services.GetRequest{Key: resource.Key{GroupResource: resource.GroupResource{Resource: "nodes"}, Name: name}})
	if services.IsReason(err, services.ReasonNotFound) {
		return r.Forbid("node %q not found", name)
	}
	if err != nil {
		return err
	}
	if os, ok := stored.Labels[p.OS]; ok && os != "linux" {
		return because("UnsupportedPlatform", r.Forbid("pod resize is only supported on linux nodes, node %q is %q", name, os))
	}
	return p.fits(r, stored)
}

// fits returns Forbidden (403) if the pod of a review requests more than the allocatable resources of a node.
func (p Resize) fits(r *review.Review, stored services.Object) error {
	var node struct {
		Status struct {
			Allocatable quota.Amounts `json:"allocatable"`
		} `json:"status"`
	}
	if err := json.Unmarshal(stored.JSON, &node); err != nil {
		return err
	}
	object, err := r.Current()
	if err != nil {
		return err
	}
	item, err := p.Counter.Read(r.Type(), object)
	if err != nil {
		return err
	}
	var beyond []string
	for _, of := range []struct {
		name  string
		value func(*apiresource.Quantity) int64
	}{{"cpu", (*apiresource.Quantity).MilliValue}, {"memory", (*apiresource.Quantity).Value}} {
		requested, has := item.Used[of.name], node.Status.Allocatable[of.name]
		if requested.Cmp(has) > 0 {
			beyond = append(beyond, fmt.Sprintf("%s, requested: %d, allocatable: %d", of.name, of.value(&requested), of.value(&has)))
		}
	}
	if len(beyond) > 0 {
		return because("NodeCapacity", r.Forbid("node didn't have enough allocatable resources: %s", strings.Join(beyond, "; ")))
	}
	return nil
}

// because adds a cause to a status.
func because(cause string, status *services.Status) *services.Status {
	status.Details.Causes = append(status.Details.Causes, services.StatusCause{Reason: cause})
	return status
}
