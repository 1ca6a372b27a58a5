package node

import (
	"context"
	"encoding/json"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
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

// catchUp waits until the mirrors include everything stored so far. It reports whether
// they changed their position, so that another look may give another result.
func (a *Authorizer) catchUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	revision, err := a.config.Store.Revision(ctx)
	if err != nil || min(a.pods.Revision(), a.volumes.Revision(), a.attachments.Revision()) >= revision {
		return false
	}
	for _, wait := range []func(context.Context, int64) error{a.pods.WaitFor, a.volumes.WaitFor, a.attachments.WaitFor} {
		if wait(ctx, revision) != nil {
			break // decide with what is there
		}
	}
	return true
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

// parseAttachment returns the node of a VolumeAttachment.
func parseAttachment(o services.Object) (string, error) {
	var stored struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	err := json.Unmarshal(o.JSON, &stored)
	return stored.Spec.NodeName, err
}

// secretRef is a reference to a Secret in a volume; without a namespace it is in that of
// the claim.
type secretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// parseVolume parses a stored PersistentVolume. Volumes without a claim are not mirrored.
func parseVolume(o services.Object) (*volume, error) {
	var stored struct {
		Spec struct {
			ClaimRef *secretRef `json:"claimRef"`
			CSI      *struct {
				Publish *secretRef `json:"nodePublishSecretRef"`
				Stage   *secretRef `json:"nodeStageSecretRef"`
				Control *secretRef `json:"controllerPublishSecretRef"`
				Expand  *secretRef `json:"nodeExpandSecretRef"`
			} `json:"csi"`
			AzureFile *struct {
				SecretName      string `json:"secretName"`
				SecretNamespace string `json:"secretNamespace"`
			} `json:"azureFile"`
			CephFS    secretHolder `json:"cephfs"`
			Cinder    secretHolder `json:"cinder"`
			Flex      secretHolder `json:"flexVolume"`
			ISCSI     secretHolder `json:"iscsi"`
			RBD       secretHolder `json:"rbd"`
			ScaleIO   secretHolder `json:"scaleIO"`
			StorageOS secretHolder `json:"storageos"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(o.JSON, &stored); err != nil {
		return nil, err
	}
	spec := stored.Spec
	if spec.ClaimRef == nil {
		return nil, changes.ErrSkip
	}
	v := &volume{name: o.Key.Name, claim: reference{spec.ClaimRef.Namespace, spec.ClaimRef.Name}}
	refs := []*secretRef{spec.CephFS.Ref, spec.Cinder.Ref, spec.Flex.Ref, spec.ISCSI.Ref, spec.RBD.Ref, spec.ScaleIO.Ref, spec.StorageOS.Ref}
	if spec.CSI != nil {
		refs = append(refs, spec.CSI.Publish, spec.CSI.Stage, spec.CSI.Control, spec.CSI.Expand)
	}
	if f := spec.AzureFile; f != nil {
		refs = append(refs, &secretRef{f.SecretName, f.SecretNamespace})
	}
	for _, r := range refs {
		if r == nil || r.Name == "" {
			continue
		}
		if r.Namespace == "" {
			r.Namespace = v.claim.namespace
		}
		v.secrets = append(v.secrets, reference{r.Namespace, r.Name})
	}
	return v, nil
}

// secretHolder is a source of a volume that names a Secret.
type secretHolder struct {
	Ref *secretRef `json:"secretRef"`
}
