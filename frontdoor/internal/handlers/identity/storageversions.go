package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// core is the name of the group without one.
const core = "core"

// condition is the type of the condition.
const condition = "AllEncodingVersionsEqual"

// versionKeeper keeps the entries of a front door in StorageVersions: in which version it stores the objects
// of a resource, and which it can read. It removes the entries of front doors whose Lease is gone, as
// kube-controller-manager does beside kube-apiserver.
type versionKeeper struct {
	*Keeper
	// self is the ID of the front door, the name of its Lease.
	self string
}

// pass brings the entries up to date. alive reports whether the front door with an ID has a Lease.
// It does nothing if StorageVersions are not served.
func (k versionKeeper) pass(ctx context.Context, e *typesystem.Engine, alive func(id string) bool) error {
	t, ok := e.Types.ByKind(k.Vocabulary.Group("internal.apiserver."), "v1alpha1", "StorageVersion")
	if !ok {
		return nil
	}
	missing := k.entries(e.Types)
	var errs []error
	_, err := services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: t.GroupResource()}, func(o services.Object) error {
		errs = append(errs, k.correct(ctx, e, t, o, update{k.self, missing[o.Key.Name], alive, k.now()}))
		delete(missing, o.Key.Name)
		return nil
	})
	if err != nil {
		return err
	}
	for name, own := range missing {
		object := map[string]any{"apiVersion": t.APIVersion(), "kind": t.Kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{}}
		err := k.Writes.Create(ctx, e, t, object)
		if err == nil { // the status of an object that is created is dropped
			err = k.amend(ctx, e, t, resource.Key{GroupResource: t.GroupResource(), Name: name}, update{k.self, own, alive, k.now()})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// correct updates a StorageVersion, or deletes it if no front door has an entry in it.
func (k versionKeeper) correct(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, o services.Object, u update) error {
	object, err := e.DecodeStored(ctx, o, t)
	if err != nil {
		return err
	}
	before := tree.Copy(object)
	had := len(entriesOf(object)) > 0
	u.apply(object)
	switch {
	case had && len(entriesOf(object)) == 0:
		_, err := k.Store.Delete(ctx, services.DeleteRequest{Key: o.Key, Revision: o.Revision})
		if services.IsReason(err, services.ReasonNotFound) || services.IsConflict(err) {
			return nil // the next pass sees why
		}
		return err
	case tree.Equal(before, object):
		return nil
	}
	return k.amend(ctx, e, t, o.Key, u)
}

func (k versionKeeper) amend(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, key resource.Key, u update) error {
	err := k.Writes.Amend(ctx, amend.Amendment{Engine: e, Type: t, Key: key, Change: func(object map[string]any) error {
		u.apply(object)
		return nil
	}})
	if services.IsReason(err, services.ReasonNotFound) {
		return nil // the next pass creates it
	}
	return err
}

// entries returns the entries of this front door, by the names of their StorageVersions: one for each
// resource that has stored objects of its own. Groups that share objects have that of the first group.
func (k versionKeeper) entries(types *catalogue.Catalogue) map[string]map[string]any {
	first := map[resource.GroupResource]*catalogue.Type{}
	for _, g := range types.Groups() {
		for _, v := range g.Versions {
			for _, t := range v.Types {
				if t.Virtual || t.Custom || len(t.Verbs) == 0 {
					continue
				}
				if known := first[t.Key]; known == nil || t.Group < known.Group {
					first[t.Key] = t
				}
			}
		}
	}
	all := map[string]map[string]any{}
	for _, t := range first {
		stored := t.Stored.APIVersion()
		decodable, served := []any{stored}, []any{}
		for _, version := range types.Sharing(t) {
			if name := version.APIVersion(); !slices.Contains(decodable, any(name)) {
				decodable = append(decodable, name)
			}
			if version.Group == t.Group {
				served = append(served, version.APIVersion())
			}
		}
		group := t.Group
		if group == "" {
			group = core
		}
		all[group+"."+t.Resource] = map[string]any{"apiServerID": k.self, "encodingVersion": stored, "decodableVersions": decodable, "servedVersions": served}
	}
	return all
}

// update is what a front door changes in a StorageVersion.
type update struct {
	self  string
	own   map[string]any // its entry; nil for a resource that it does not have
	alive func(id string) bool
	now   time.Time
}

func entriesOf(object map[string]any) []map[string]any {
	return tree.Objects(object, "status", "storageVersions")
}

// apply changes the entries, and what follows from them.
func (u update) apply(object map[string]any) {
	var entries []any
	found := u.own == nil
	for _, entry := range entriesOf(object) {
		switch id := tree.Text(entry, "apiServerID"); {
		case id == u.self && u.own != nil:
			entries, found = append(entries, u.own), true
		case id != u.self && u.alive(id):
			entries = append(entries, entry)
		}
	}
	if !found {
		entries = append(entries, u.own)
	}
	status := tree.Object(object, "status")
	delete(status, "storageVersions")
	if len(entries) > 0 {
		status["storageVersions"] = entries
	}
	before := tree.Text(status, "commonEncodingVersion")
	common := commonOf(entries)
	delete(status, "commonEncodingVersion")
	if common != "" {
		status["commonEncodingVersion"] = common
	}
	u.conclude(object, before != "" && common != "" && before != common)
}

// commonOf returns the version in which all encode; empty if there is none.
func commonOf(entries []any) (common string) {
	for i, entry := range entries {
		version := tree.Text(entry.(map[string]any), "encodingVersion")
		if i > 0 && version != common {
			return ""
		}
		common = version
	}
	return common
}

// conclude sets the condition. Its time is that of the last change of its status, or of the common version
// if other is true.
func (u update) conclude(object map[string]any, other bool) {
	status := tree.Object(object, "status")
	value, reason := "False", "Unset"
	if tree.Text(status, "commonEncodingVersion") != "" {
		value, reason = "True", "Set"
	}
	c := map[string]any{"type": condition, "status": value, "reason": "CommonEncodingVersion" + reason, "message": "Common encoding version " + strings.ToLower(reason),
		"lastTransitionTime": u.now.UTC().Format(time.RFC3339)}
	if generation := tree.Number(object, "metadata", "generation"); generation > 0 {
		c["observedGeneration"] = generation
	}
	conditions := slices.Clone(tree.List(object, "status", "conditions"))
	i := slices.IndexFunc(conditions, func(v any) bool {
		before, _ := v.(map[string]any)
		return tree.Text(before, "type") == condition
	})
	if i < 0 {
		status["conditions"] = append(conditions, c)
		return
	}
	before := conditions[i].(map[string]any)
	if tree.Text(before, "status") == value && !other {
		c["lastTransitionTime"] = before["lastTransitionTime"]
	}
	conditions[i] = c
	status["conditions"] = conditions
}
