package node

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// catchUpTimeout bounds how long a refusal is delayed until the mirrors include everything
// stored before the request: a pod may have been bound to the node a moment ago.
const catchUpTimeout = 250 * time.Millisecond

// reference names an object of a namespace.
type reference struct{ namespace, name string }

// volume is the part of a PersistentVolume that decides.
type volume struct {
	name    string
	claim   reference
	secrets []reference
}

// catchUp waits until the mirrors include everything stored so far, as far as that takes no longer than
// catchUpTimeout.
func (a *Authorizer) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	revision, err := a.config.Store.Revision(ctx, resource.GroupResource{})
	if err != nil {
		return
	}
	for _, m := range a.mirrors() {
		if m.Revision() < revision && m.WaitFor(ctx, revision) != nil {
			return
		}
	}
}

// anyPod reports whether a pod of a node and namespace satisfies a condition.
func (a *Authorizer) anyPod(node, namespace string, satisfies func(*pod) bool) bool {
	if namespace == "" {
		return false
	}
	for _, p := range a.pods.List(namespace) {
		if p.node == node && satisfies(p) {
			return true
		}
	}
	return false
}

func (a *Authorizer) usesSecret(node, namespace, name string) bool {
	if a.anyPod(node, namespace, func(p *pod) bool { return p.secrets.Has(name) }) {
		return true
	}
	for _, v := range a.volumes.List("") {
		for _, s := range v.secrets {
			if s == (reference{namespace, name}) && a.usesClaim(node, v.claim.namespace, v.claim.name) {
				return true
			}
		}
	}
	return false
}

func (a *Authorizer) usesConfigMap(node, namespace, name string) bool {
	return a.anyPod(node, namespace, func(p *pod) bool { return p.configMaps.Has(name) })
}

func (a *Authorizer) usesClaim(node, namespace, name string) bool {
	return a.anyPod(node, namespace, func(p *pod) bool { return p.claims.Has(name) })
}

func (a *Authorizer) usesAccount(node, namespace, name string) bool {
	return a.anyPod(node, namespace, func(p *pod) bool { return p.account == name })
}

func (a *Authorizer) usesVolume(node, _, name string) bool {
	v, ok := a.volumes.Get("", name)
	return ok && a.usesClaim(node, v.claim.namespace, v.claim.name)
}

func (a *Authorizer) attaches(node, _, name string) bool {
	attached, ok := a.attachments.Get("", name)
	return ok && attached == node
}

func (a *Authorizer) runs(node, namespace, name string) bool {
	p, ok := a.pods.Get(namespace, name)
	return ok && p.node == node
}

func (a *Authorizer) usesDevices(node, namespace, name string) bool {
	return a.anyPod(node, namespace, func(p *pod) bool { return slices.Contains(p.devices, name) })
}

func (a *Authorizer) hasSlice(node, _, name string) bool {
	of, ok := a.slices.Get("", name)
	return ok && of == node
}

func (a *Authorizer) hasRequest(node, namespace, name string) bool {
	of, ok := a.requests.Get(namespace, name)
	return ok && of == node
}

// parseNodeName returns the spec.nodeName of an object. Those without one are not mirrored.
func parseNodeName(o services.Object) (string, error) {
	var stored struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	err := json.Unmarshal(o.JSON, &stored)
	if err == nil && stored.Spec.NodeName == "" {
		err = changes.ErrSkip
	}
	return stored.Spec.NodeName, err
}

// parseVolume parses a stored PersistentVolume. Volumes without a claim are not mirrored.
func parseVolume(o services.Object) (*volume, error) {
	stored, err := tree.Decode(o.JSON)
	if err != nil {
		return nil, err
	}
	spec := tree.Child(stored, "spec")
	if tree.Child(spec, "claimRef") == nil {
		return nil, changes.ErrSkip
	}
	v := &volume{name: o.Key.Name, claim: reference{tree.Text(spec, "claimRef", "namespace"), tree.Text(spec, "claimRef", "name")}}
	for _, secret := range references.OfVolume(spec) {
		v.secrets = append(v.secrets, reference{secret.Namespace, secret.Name})
	}
	return v, nil
}
