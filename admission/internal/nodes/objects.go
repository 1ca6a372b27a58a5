package nodes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// node lets a node register and update itself, but for what would draw pods or secrets
// to it.
func (p Plugin) node(r *review.Review, name string) error {
	if r.Name != name {
		return r.Forbid("node %q is not allowed to modify node %q", name, r.Name)
	}
	if r.Operation != services.OperationCreate && r.Operation != services.OperationUpdate {
		return nil
	}
	var now, before corev1.Node
	if err := read(r, &now, &before); err != nil {
		return err
	}
	forbidden := strings.Join(p.forbidden(changed(now.Labels, before.Labels)), ", ")
	created := r.Operation == services.OperationCreate
	switch {
	case created && now.Spec.ConfigSource != nil:
		return r.Forbid("node %q is not allowed to create pods with a non-nil configSource", name)
	case created && forbidden != "":
		return r.Forbid("node %q is not allowed to set the following labels: %s", name, forbidden)
	case created:
		return nil
	case now.Spec.ConfigSource != nil && !equality.Semantic.DeepEqual(now.Spec.ConfigSource, before.Spec.ConfigSource):
		return r.Forbid("node %q is not allowed to update configSource to a new non-nil configSource", name)
	case !equality.Semantic.DeepEqual(now.Spec.Taints, before.Spec.Taints):
		return r.Forbid("node %q is not allowed to modify taints", name)
	case p.later() && !equality.Semantic.DeepEqual(now.OwnerReferences, before.OwnerReferences):
		return r.Forbid("node %q is not allowed to modify ownerReferences", name)
	case forbidden != "":
		return r.Forbid("is not allowed to modify labels: %s", forbidden)
	}
	return nil
}

// read decodes the object of a review, and the one before, if there is one.
func read(r *review.Review, now, before any) error {
	current, err := r.Current()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(current, now); err != nil {
		return services.BadRequest("the object is not readable: %v", err)
	}
	if r.Operation != services.OperationUpdate {
		return nil
	}
	if err := json.Unmarshal(r.OldObject, before); err != nil {
		return fmt.Errorf("reading the stored object: %w", err)
	}
	return nil
}

// changed returns the keys under which two maps differ, sorted.
func changed(a, b map[string]string) (keys []string) {
	for key, value := range a {
		if old, ok := b[key]; !ok || old != value {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// forbidden returns the labels that a node must not set, of some.
func (p Plugin) forbidden(labels []string) []string {
	v := p.Vocabulary
	restricted, _, _ := strings.Cut(v.Qualified("node-restriction", ""), "/")
	makers := []string{v.Domain, strings.TrimPrefix(v.Group("x."), "x.")}
	allowed := []string{
		v.Qualified("", "hostname"), v.Qualified("", "os"), v.Qualified("", "arch"), v.Qualified("beta", "os"), v.Qualified("beta", "arch"),
		v.Qualified("topology", "zone"), v.Qualified("topology", "region"), v.Qualified("beta", "instance-type"), v.Qualified("node", "instance-type"),
		v.Qualified("failure-domain.beta", "zone"), v.Qualified("failure-domain.beta", "region"),
	}
	domains := []string{v.NodeAgent + "." + v.Domain, "node." + v.Domain}
	return slices.DeleteFunc(labels, func(label string) bool {
		domain, _, ok := strings.Cut(label, "/")
		if !ok {
			return true
		}
		if within(domain, []string{restricted}) {
			return false
		}
		return !within(domain, makers) || slices.Contains(allowed, label) || within(domain, domains)
	})
}

// within reports whether a domain is one of some or a part of one.
func within(domain string, of []string) bool {
	return slices.ContainsFunc(of, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// claimStatus lets a node write the capacity and the conditions of claims.
func (p Plugin) claimStatus(r *review.Review, name string) error {
	if r.Subresource != "status" {
		return r.Forbid("may only update PVC status")
	}
	if r.Operation != services.OperationUpdate {
		return r.Forbid("unexpected operation %q", r.Operation)
	}
	var now, before corev1.PersistentVolumeClaim
	if err := read(r, &now, &before); err != nil {
		return err
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{&now, &before} {
		claim.ResourceVersion, claim.ManagedFields, claim.Status.Capacity, claim.Status.Conditions = "", nil, nil, nil
		if p.later() { // an expansion can recover
			claim.Status.AllocatedResources, claim.Status.AllocatedResourceStatuses = nil, nil
		}
	}
	var differ []string
	for _, part := range []struct {
		name        string
		now, before any
	}{
		{"metadata", now.ObjectMeta, before.ObjectMeta}, {"spec", now.Spec, before.Spec}, {"status", now.Status, before.Status},
	} {
		if !equality.Semantic.DeepEqual(part.now, part.before) {
			differ = append(differ, part.name)
		}
	}
	if len(differ) > 0 {
		return r.Forbid("node %q is not allowed to update fields other than status.capacity and status.conditions: %s", name, strings.Join(differ, ", "))
	}
	return nil
}
