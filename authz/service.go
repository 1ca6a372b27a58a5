// Package authz is the service that decides what users may do. --authorization-mode, or the
// file of --authorization-config, lists its modes, which it asks in order: by stored roles and bindings (RBAC, the default), by
// what the pods of a node use (Node), by a remote service (Webhook), or by a file (ABAC).
// Members of system:masters may do everything. It mirrors what it decides by and never
// writes anything; the rules of aggregated cluster roles are gathered while changing the
// index of roles. It serves sections "Authorization notes" and "Impersonation" of the
// specification.
package authz

import (
	"context"
	"slices"

	"github.com/portico-platform/portico/authz/internal/abac"
	"github.com/portico-platform/portico/authz/internal/config"
	"github.com/portico-platform/portico/authz/internal/node"
	"github.com/portico-platform/portico/authz/internal/remote"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/bus"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
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
	var file *configuration
	if s.configFile != "" {
		if file, err = b.configuration(); err != nil {
			return err
		}
		b.modes = file.types
	}
	if err := b.read(); err != nil {
		return err
	}
	if err := b.follow(ctx); err != nil {
		return err
	}
	if file != nil {
		file.use(b.made)
		n.Go("following the authorization configuration", file.run)
		contract.Authz.Offer(n, file)
		return nil
	}
	var all chain
	for _, name := range b.modes {
		all = append(all, mode{name, b.made[name]})
	}
	contract.Authz.Offer(n, all)
	return nil
}

// builder makes the modes of a process.
type builder struct {
	settings
	node *run.Node
	made map[string]services.Authz // by mode
}

// configuration opens the file of --authorization-config.
func (b *builder) configuration() (*configuration, error) {
	parser, err := config.NewParser(config.Settings{Vocabulary: b.node.Vocabulary, Release: b.node.Release, Types: allModes})
	if err != nil {
		return nil, err
	}
	file, err := openConfiguration(b.configFile, parser, b.node.Metrics, b.node.Log)
	if err != nil {
		return nil, run.Usagef("--authorization-config: %v", err)
	}
	return file, nil
}

// read makes the modes that need no connection to other services.
func (b *builder) read() (err error) {
	b.made = map[string]services.Authz{modeAlwaysAllow: constant(true), modeAlwaysDeny: constant(false)}
	if err := b.needs(modeABAC, "--authorization-policy-file", b.policyFile); err != nil {
		return err
	}
	if slices.Contains(b.modes, modeABAC) {
		if b.made[modeABAC], err = abac.Load(b.policyFile, b.node.Vocabulary); err != nil {
			return run.Usagef("--authorization-policy-file: %v", err)
		}
	}
	if b.configFile == "" && slices.Contains(b.modes, modeWebhook) {
		b.made[modeWebhook], err = b.webhook()
	}
	return err
}

func (b *builder) webhook() (services.Authz, error) {
	version, err := remote.APIVersion(b.webhookFormat, b.node.Vocabulary)
	if err != nil {
		return nil, run.Usagef("--authorization-webhook-version: %v", err)
	}
	w, err := remote.New(remote.Config{File: b.webhookFile, APIVersion: version, AllowedTTL: b.allowedTTL, DeniedTTL: b.deniedTTL, Timeout: remote.Timeout,
		Selectors: !b.node.Release.Before(release.V136)})
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
	roles := newRoleBased(sources{changes: source, store: store, group: n.Vocabulary.Group("rbac.authorization."), log: n.Log})
	b.made[modeRBAC] = roles
	loops, ready := roles.loops(), []<-chan struct{}{roles.ready}
	if byNode {
		nodes := node.New(node.Config{Changes: source, Store: store, Vocabulary: n.Vocabulary, Release: n.Release, Rules: roles.byRole(nodeRole), Log: n.Log})
		b.made[modeNode] = nodes
		loops, ready = append(loops, nodes.Loops()...), append(ready, nodes.Ready()...)
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
