// Package serviceaccount sets the service account of new pods: the account default if the
// pod names none, with the account's pull secrets and, unless automounting is off, a token
// volume in its containers. It rejects pods whose account does not exist, and creates
// neither accounts nor tokens. It implements ServiceAccount under "Admission plugins" and
// "Service account token flags" of the specification.
package serviceaccount

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// defaultAccount is the account of pods that name none.
	defaultAccount = "default"
	// patience bounds the wait of a pod for the default account of a new namespace, which is created
	// asynchronously.
	patience = 2 * time.Second
	// tokenSeconds is the lifetime of a mounted token: an hour and a few seconds, as in
	// Kubernetes.
	tokenSeconds = 3607
)

// Account is the part of a stored service account that pods depend on.
type Account struct {
	AutomountToken *bool   `json:"automountServiceAccountToken"`
	Secrets        []named `json:"secrets"`
	PullSecrets    []any   `json:"imagePullSecrets"`
	Metadata       struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

type named struct {
	Name string `json:"name"`
}

// Parse reads a stored service account.
func Parse(o services.Object) (Account, error) {
	var a Account
	return a, json.Unmarshal(o.JSON, &a)
}

// Accounts are the stored accounts.
type Accounts interface {
	review.Collection[Account]
	// Await returns an account once there is one; false if ctx ends before.
	Await(ctx context.Context, namespace, name string) (Account, bool)
}

// Plugin is the admission plugin ServiceAccount.
type Plugin struct {
	Accounts   Accounts
	Store      services.Reader
	Vocabulary vocabulary.Vocabulary
}

// Mutate sets the service account of a new pod, and adds its token volume and its image
// pull secrets.
func (p *Plugin) Mutate(ctx context.Context, r *review.Review) error {
	pod, spec, err := r.NewPod()
	if err != nil || spec == nil || p.isMirrorPod(pod) {
		return err
	}
	name, _ := spec["serviceAccountName"].(string)
	if name == "" {
		name = defaultAccount
		spec["serviceAccountName"] = name
		r.Changed()
	}
	account, err := p.account(ctx, r, name)
	if err != nil {
		return err
	}
	if account.mounts(spec) && p.mountToken(spec) {
		r.Changed()
	}
	if own, _ := spec["imagePullSecrets"].([]any); len(own) == 0 && len(account.PullSecrets) > 0 {
		spec["imagePullSecrets"] = account.PullSecrets
		r.Changed()
	}
	return nil
}

// isMirrorPod reports whether a pod represents a static pod of a node.
func (p *Plugin) isMirrorPod(pod map[string]any) bool {
	return tree.Child(pod, "metadata", "annotations")[p.Vocabulary.Qualified("", "config.mirror")] != nil
}

// account returns an account. The mirror may lag behind the store, so only the newest
// state rejects the pod.
func (p *Plugin) account(ctx context.Context, r *review.Review, name string) (Account, error) {
	if known, ok := p.Accounts.Get(r.Namespace, name); ok {
		return known, nil
	}
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "serviceaccounts"}, Namespace: r.Namespace, Name: name}
	for waited := false; ; waited = true {
		stored, err := p.Store.Get(ctx, services.GetRequest{Key: key})
		if err == nil {
			return Parse(stored)
		}
		if !services.IsReason(err, services.ReasonNotFound) {
			return Account{}, err
		}
		if name != defaultAccount || waited || !p.exists(ctx, r.Namespace) {
			return Account{}, r.Forbid("error looking up service account %s/%s: serviceaccount %q not found", r.Namespace, name, name)
		}
		waiting, cancel := context.WithTimeout(ctx, patience)
		account, found := p.Accounts.Await(waiting, r.Namespace, name)
		if cancel(); found {
			return account, nil
		}
		if err := ctx.Err(); err != nil {
			return Account{}, err
		}
	}
}

// exists reports whether a namespace exists. In a missing one no account will appear.
func (p *Plugin) exists(ctx context.Context, namespace string) bool {
	_, err := p.Store.Get(ctx, services.GetRequest{Key: resource.Key{GroupResource: resource.GroupResource{Resource: "namespaces"}, Name: namespace}})
	return err == nil
}

// mounts reports whether a pod gets the account's token. The pod's field has precedence
// over the account's.
func (a *Account) mounts(spec map[string]any) bool {
	if own, ok := spec["automountServiceAccountToken"].(bool); ok {
		return own
	}
	return a.AutomountToken == nil || *a.AutomountToken
}

// mountToken mounts a token volume into every container without a mount at its path, and
// reports whether there was such a container.
func (p *Plugin) mountToken(spec map[string]any) bool {
	place := "/var/run/secrets/" + p.Vocabulary.Domain + "/serviceaccount"
	var name string
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			mounts, _ := container["volumeMounts"].([]any)
			if !ok || mountsAt(mounts, place) {
				continue
			}
			if name == "" {
				name = p.Vocabulary.TokenVolume() + rand.String(5)
			}
			container["volumeMounts"] = append(mounts, map[string]any{"name": name, "readOnly": true, "mountPath": place})
		}
	}
	if name == "" {
		return false
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, p.volume(name))
	return true
}

func mountsAt(mounts []any, place string) bool {
	for _, m := range mounts {
		if mount, _ := m.(map[string]any); mount["mountPath"] == place {
			return true
		}
	}
	return false
}

// volume returns a projected volume with a token, the CA bundle of the API and the
// namespace.
func (p *Plugin) volume(name string) map[string]any {
	return map[string]any{"name": name, "projected": map[string]any{"defaultMode": 0o644, "sources": []any{
		map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": tokenSeconds, "path": "token"}},
		map[string]any{"configMap": map[string]any{"name": p.Vocabulary.RootCertificate(),
			"items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}}}},
		map[string]any{"downwardAPI": map[string]any{"items": []any{map[string]any{"path": "namespace",
			"fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.namespace"}}}}},
	}}}
}

// Validate rejects pods that reference secrets which their account does not allow, also
// when ephemeral containers are added.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	if r.Is(services.OperationUpdate, "", "pods/ephemeralcontainers") {
		return p.validateEphemeral(ctx, r)
	}
	pod, spec, err := r.NewPod()
	if err != nil || pod == nil {
		return err
	}
	name, _ := spec["serviceAccountName"].(string)
	if p.isMirrorPod(pod) {
		if name != "" {
			return r.Forbid("a mirror pod may not reference service accounts")
		}
		return checkMirrorPod(r, spec)
	}
	if name == "" {
		return r.Forbid("no service account specified for pod %s/%s", r.Namespace, r.Name)
	}
	return p.checkSecrets(ctx, r, name, spec)
}

// checkMirrorPod rejects what would give a node more than it may read: Secrets and tokens.
func checkMirrorPod(r *review.Review, spec map[string]any) error {
	if slices.ContainsFunc(references.OfPod(spec), func(used references.Reference) bool { return used.Resource == references.Secrets }) {
		return r.Forbid("a mirror pod may not reference secrets")
	}
	for _, v := range tree.Objects(spec, "volumes") {
		for _, source := range tree.Objects(v, "projected", "sources") {
			if source["serviceAccountToken"] != nil {
				return r.Forbid("a mirror pod may not use ServiceAccountToken volume projections")
			}
		}
	}
	return nil
}

// validateEphemeral checks only the ephemeral containers: all else was checked when the
// pod was created.
func (p *Plugin) validateEphemeral(ctx context.Context, r *review.Review) error {
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
	name, _ := spec["serviceAccountName"].(string)
	if name == "" || p.isMirrorPod(pod) {
		return nil
	}
	return p.checkSecrets(ctx, r, name, map[string]any{ephemeral: spec[ephemeral]})
}

// checkSecrets rejects secrets that the account does not reference, if the account is
// annotated to enforce that.
func (p *Plugin) checkSecrets(ctx context.Context, r *review.Review, name string, spec map[string]any) error {
	account, err := p.account(ctx, r, name)
	if err != nil {
		return err
	}
	if enforced, _ := strconv.ParseBool(account.Metadata.Annotations[p.Vocabulary.Qualified("", "enforce-mountable-secrets")]); !enforced {
		return nil
	}
	own := account.mountable()
	for _, used := range references.OfPod(spec) {
		if !own.allows(used) {
			return r.Forbid("%s references secret %q, which service account %s does not", used.Field, used.Name, name)
		}
	}
	return nil
}
