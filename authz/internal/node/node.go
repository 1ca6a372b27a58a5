// Package node authorizes the agents of nodes: each may read the Secrets, ConfigMaps and
// volumes that the pods of its own node use, may request tokens for their service accounts,
// and may write its own Lease and CSINode. From release 1.36 on, it may only read its own
// Node, its pods, the devices that these use, and what is about its name. For everything else
// the rules of the cluster role system:node hold. It mirrors pods, PersistentVolumes,
// VolumeAttachments and what later releases add, and changes nothing. It serves section "Authorization notes" of the specification.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Config configures an Authorizer.
type Config struct {
	Changes    changes.Source
	Store      services.Reader
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	// Rules decides what the graph of objects does not.
	Rules func(ctx context.Context, a services.Attributes) services.Decision
	Log   *slog.Logger
}

// Authorizer implements services.Authz for the agents of nodes, and has no opinion on other
// users.
type Authorizer struct {
	config      Config
	pods        *changes.Mirror[*pod]
	volumes     *changes.Mirror[*volume]
	attachments *changes.Mirror[string] // names of nodes
	// slices of devices and requests for certificates have names of nodes; nil before 1.36.
	slices, requests *changes.Mirror[string]
}

// New returns an authorizer whose mirrors are empty until the loops run.
func New(c Config) *Authorizer {
	a := &Authorizer{config: c,
		pods:        mirror(c, resource.GroupResource{Resource: "pods"}, parserOfPods(c.Vocabulary)),
		volumes:     mirror(c, resource.GroupResource{Resource: "persistentvolumes"}, parseVolume),
		attachments: mirror(c, resource.GroupResource{Group: c.Vocabulary.Group("storage."), Resource: "volumeattachments"}, parseNodeName),
	}
	if !c.Release.Before(release.V136) {
		a.slices = mirror(c, resource.GroupResource{Group: c.Vocabulary.Group("resource."), Resource: "resourceslices"}, parseNodeName)
		a.requests = mirror(c, resource.GroupResource{Group: c.Vocabulary.Group("certificates."), Resource: "podcertificaterequests"}, parseNodeName)
	}
	return a
}

// follower is a mirror of objects of any type.
type follower interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	Revision() int64
	WaitFor(ctx context.Context, revision int64) error
}

// mirrors returns all that the graph is made of.
func (a *Authorizer) mirrors() []follower {
	all := []follower{a.pods, a.volumes, a.attachments}
	if a.slices != nil {
		all = append(all, a.slices, a.requests)
	}
	return all
}

func mirror[T any](c Config, gr resource.GroupResource, parse func(services.Object) (T, error)) *changes.Mirror[T] {
	return changes.NewMirror(changes.MirrorConfig[T]{Source: c.Changes, Store: c.Store, GroupResource: gr, Decode: parse, Log: c.Log})
}

// Loops are the background loops of the mirrors.
func (a *Authorizer) Loops() (loops []func(context.Context) error) {
	for _, m := range a.mirrors() {
		loops = append(loops, m.Run)
	}
	return loops
}

// Ready returns channels that are closed when the mirrors have listed.
func (a *Authorizer) Ready() (ready []<-chan struct{}) {
	for _, m := range a.mirrors() {
		ready = append(ready, m.Ready())
	}
	return ready
}

// Authorize implements services.Authz: allowed, or no opinion. A refusal includes all
// objects that were stored before the request, as far as the mirrors catch up in time.
func (a *Authorizer) Authorize(ctx context.Context, q services.Attributes) (services.Decision, error) {
	name, is := q.User.Node()
	switch {
	case !is:
		return services.Decision{Revision: math.MaxInt64, AnyName: true}, nil // whatever is stored
	case name == "":
		return refuse("unknown node for user %q", q.User.Name), nil
	}
	check := a.check(q)
	if check == nil {
		return a.config.Rules(ctx, q), nil
	}
	if decision := check(name, q); decision.Allowed {
		return decision, nil
	}
	a.catchUp(ctx) // the mirrors may have changed since, whether or not they were behind just now
	return check(name, q), nil
}

// check returns the function that decides about a type, or nil where rules do.
func (a *Authorizer) check(q services.Attributes) func(node string, q services.Attributes) services.Decision {
	v := a.config.Vocabulary
	if q.Path != "" {
		return nil
	}
	switch (resource.GroupResource{Group: q.Group, Resource: q.Resource}) {
	case resource.GroupResource{Resource: "secrets"}:
		return a.readOnly(a.usesSecret, "get", "list", "watch")
	case resource.GroupResource{Resource: "configmaps"}:
		return a.readOnly(a.usesConfigMap, "get", "list", "watch")
	case resource.GroupResource{Resource: "persistentvolumeclaims"}:
		if q.Subresource == "status" {
			return statusOf(a.usesClaim)
		}
		return a.readOnly(a.usesClaim, "get")
	case resource.GroupResource{Resource: "persistentvolumes"}:
		return a.readOnly(a.usesVolume, "get")
	case resource.GroupResource{Resource: "serviceaccounts"}:
		return a.token
	case resource.GroupResource{Group: v.Group("storage."), Resource: "volumeattachments"}:
		return a.readOnly(a.attaches, "get")
	case resource.GroupResource{Group: v.Group("coordination."), Resource: "leases"}:
		return a.lease
	case resource.GroupResource{Group: v.Group("storage."), Resource: "csinodes"}:
		return csiNode
	}
	if !a.config.Release.Before(release.V136) {
		return a.checkLater(q)
	}
	return nil
}

// relation reports whether a node needs an object.
type relation func(node, namespace, name string) bool

// readOnly decides about a type whose objects a node may only read, each by its name: a
// list or watch needs a field selector with it.
func (a *Authorizer) readOnly(uses relation, verbs ...string) func(string, services.Attributes) services.Decision {
	return func(node string, q services.Attributes) services.Decision {
		if !slices.Contains(verbs, q.Verb) || q.Subresource != "" {
			return refuse("can only read resources of this type")
		}
		return ofNode(uses, node, q)
	}
}

// ofNode allows what is about one object that a node needs.
func ofNode(uses relation, node string, q services.Attributes) services.Decision {
	switch {
	case q.Name == "":
		return refuse("No Object name found")
	case !uses(node, q.Namespace, q.Name):
		return refuse("no relationship found between node '%s' and this object", node)
	}
	return allow()
}

// statusOf decides about the status of objects that a node needs.
func statusOf(uses relation) func(string, services.Attributes) services.Decision {
	return func(node string, q services.Attributes) services.Decision {
		if q.Verb != "update" && q.Verb != "patch" {
			return refuse("can only get/update/patch this type")
		}
		return ofNode(uses, node, q)
	}
}

// token decides about tokens for service accounts.
func (a *Authorizer) token(node string, q services.Attributes) services.Decision {
	if q.Verb == "get" && q.Subresource == "" && !a.config.Release.Before(release.V136) {
		return a.readOnly(a.usesAccount, "get")(node, q)
	}
	switch {
	case q.Verb != "create" || q.Name == "":
		return refuse("can only create tokens for individual service accounts")
	case q.Subresource != "token":
		return refuse("can only create token subresource of serviceaccount")
	case !a.usesAccount(node, q.Namespace, q.Name):
		return refuse("no relationship found between node '%s' and this object", node)
	}
	return allow()
}

// lease decides about leases: a node may write the one with its name. The name of a new
// object is not known here, admission compares it.
func (a *Authorizer) lease(node string, q services.Attributes) services.Decision {
	switch {
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, q.Verb):
		return refuse("can only get, create, update, patch, or delete a node lease")
	case q.Namespace != a.config.Vocabulary.Namespace("node-lease"):
		return refuse("can only access leases in the %q system namespace", a.config.Vocabulary.Namespace("node-lease"))
	case q.Verb != "create" && q.Name != node:
		return refuse("can only access node lease with the same name as the requesting node")
	}
	return allow()
}

// csiNode decides about CSINodes: a node may write the one with its name.
func csiNode(node string, q services.Attributes) services.Decision {
	switch {
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, q.Verb) || q.Subresource != "":
		return refuse("can only get, create, update, patch, or delete a CSINode")
	case q.Verb != "create" && q.Name != node:
		return refuse("can only access CSINode with the same name as the requesting node")
	}
	return allow()
}

func allow() services.Decision {
	return services.Decision{Allowed: true, Reason: "NODE: the node uses this object"}
}

func refuse(format string, args ...any) services.Decision {
	return services.Decision{Reason: fmt.Sprintf(format, args...)}
}

// Rules implements services.Authz: what the graph allows is not listed.
func (a *Authorizer) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	if _, is := r.User.Node(); !is {
		return services.Rules{}, nil
	}
	return services.Rules{Incomplete: true, EvaluationError: "node authorizer does not support user rule resolution"}, nil
}

var _ services.Authz = (*Authorizer)(nil)
