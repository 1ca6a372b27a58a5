// Package authz is the service that decides what users may do. --authorization-mode lists
// its modes, which it asks in order: by stored roles and bindings (RBAC, the default), by
// what the pods of a node use (Node), by a remote service (Webhook), or by a file (ABAC).
// Members of system:masters may do everything. It mirrors what it decides by and never
// writes anything; the rules of aggregated cluster roles are gathered while compiling the
// index of roles. It serves sections "Authorization notes" and "Impersonation" of the
// specification.
package authz

import (
	"context"
	"slices"

	"github.com/portico-platform/portico/authz/internal/abac"
	"github.com/portico-platform/portico/authz/internal/node"
	"github.com/portico-platform/portico/authz/internal/remote"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
)

// nodeRole is the cluster role with the rules that hold for every node.
const nodeRole = "system:node"

// Service describes authz to the kit.
func Service() run.Service {
	return run.Service{
		Name:   "authz",
		About:  "authorizes requests: by roles and bindings, nodes, a remote service or a file",
		Offers: []run.Dependency{contract.Authz},
		Needs:  []run.Dependency{contract.Store, contract.WatchHub, bus.Conn},
		Flags:  flags,
		Start:  start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	s, err := parse(n.Flags)
	if err != nil {
		return err
	}
	b := builder{settings: s, node: n}
	// What comes from files is checked before any connection is made.
	fixed := map[string]services.Authz{modeAlwaysAllow: constant(true), modeAlwaysDeny: constant(false)}
	if slices.Contains(s.modes, modeABAC) {
		if fixed[modeABAC], err = abac.Load(s.policyFile, n.Vocabulary); err != nil {
			return run.Usagef("--authorization-policy-file: %v", err)
		}
	}
	if slices.Contains(s.modes, modeWebhook) {
		if fixed[modeWebhook], err = b.webhook(); err != nil {
			return err
		}
	}
	if err := b.follow(ctx); err != nil {
		return err
	}
	var all chain
	for _, name := range s.modes {
		of := fixed[name]
		switch name {
		case modeRBAC:
			of = b.roles
		case modeNode:
			of = b.nodes
		}
		all = append(all, mode{name, of})
	}
	contract.Authz.Offer(n, all)
	return nil
}

// builder makes the modes of a process.
type builder struct {
	settings
	node  *run.Node
	roles *roleBased
	nodes *node.Authorizer
}

func (b *builder) webhook() (services.Authz, error) {
	version, err := remote.APIVersion(b.webhookFormat, b.node.Vocabulary)
	if err != nil {
		return nil, run.Usagef("--authorization-webhook-version: %v", err)
	}
	w, err := remote.New(remote.Config{File: b.webhookFile, APIVersion: version, AllowedTTL: b.allowedTTL, DeniedTTL: b.deniedTTL})
	if err != nil {
		return nil, run.Usagef("--authorization-webhook-config-file: %v", err)
	}
	return w, nil
}

// follow starts the mirrors of the modes that decide by stored objects, and waits for them.
func (b *builder) follow(ctx context.Context) error {
	byNode := slices.Contains(b.modes, modeNode)
	if !byNode && !slices.Contains(b.modes, modeRBAC) {
		return nil
	}
	n := b.node
	store, err := contract.Store.Use(ctx, n)
	if err != nil {
		return err
	}
	source, err := changes.Use(ctx, n)
	if err != nil {
		return err
	}
	b.roles = newRoleBased(sources{changes: source, store: store, group: n.Vocabulary.Group("rbac.authorization."), log: n.Log})
	loops, ready := b.roles.loops(), []<-chan struct{}{b.roles.ready}
	if byNode {
		b.nodes = node.New(node.Config{Changes: source, Store: store, Vocabulary: n.Vocabulary, Rules: b.roles.byRole(nodeRole), Log: n.Log})
		loops, ready = append(loops, b.nodes.Loops()...), append(ready, b.nodes.Ready()...)
	}
	for _, loop := range loops {
		n.Go("roles, bindings and pods", loop)
	}
	for _, r := range ready {
		select {
		case <-r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
