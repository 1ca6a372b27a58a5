// Package rbac decides by roles and bindings. It keeps them in an index by scope and
// subject, so that a decision costs a few lookups however many bindings there are. An
// index is immutable: its owner derives a new one, which shares with the old one what has not changed, so that
// a change costs what it changes and not what else is stored. Rules of aggregated
// cluster roles are gathered when a cluster role changes; those stored in such a role are a copy for
// readers and may be old. It reads and writes no objects itself. It serves section "Authorization notes" of the
// specification.
package rbac

import "github.com/tidwall/btree"

// Index holds roles and bindings. The zero Index is empty.
type Index struct {
	cluster    *scope
	namespaces *btree.Map[string, *scope] // those that have roles or bindings
	gathered   map[string][]*Rule         // of aggregating cluster roles
}

// scope returns what is stored in a namespace, or cluster-wide if it is empty; nil if nothing is.
func (x *Index) scope(namespace string) *scope {
	if namespace == "" || x.namespaces == nil {
		return x.cluster
	}
	found, _ := x.namespaces.Get(namespace)
	return found
}

// rules returns the rules of a role, and whether there is one.
func (x *Index) rules(of Ref) ([]*Rule, bool) {
	in := x.scope(of.Namespace)
	if in == nil {
		return nil, false
	}
	role, ok := in.roles.Get(of.Name)
	if !ok {
		return nil, false
	}
	if len(role.aggregates) > 0 {
		return x.gathered[of.Name], true
	}
	return role.rules, true
}

// Change is the replacement of a role or binding. Was or Is is nil if there was or is none.
type Change[T any] struct{ Was, Is *T }

// Update returns the index after changes of roles and bindings.
func (x *Index) Update(roles []Change[Role], bindings []Change[Binding]) *Index {
	u := update{Index: Index{cluster: newScope(), namespaces: &btree.Map[string, *scope]{}, gathered: x.gathered}, own: map[string]*scope{}}
	if x.cluster != nil {
		u.cluster, u.namespaces = x.cluster, x.namespaces.Copy()
	}
	gather := false
	for _, c := range roles {
		gather = u.role(c) || gather
	}
	for _, c := range bindings {
		u.binding(c)
	}
	for namespace, changed := range u.own {
		switch {
		case namespace == "":
			u.cluster = changed
		case changed.empty():
			u.namespaces.Delete(namespace)
		default:
			u.namespaces.Set(namespace, changed)
		}
	}
	if gather {
		u.gather()
	}
	return &u.Index
}

// update is an index that is being derived from another.
type update struct {
	Index
	own map[string]*scope // copies of the scopes that change
}

// changing returns the copy of a scope.
func (u *update) changing(namespace string) *scope {
	if own := u.own[namespace]; own != nil {
		return own
	}
	own := newScope()
	if old := u.scope(namespace); old != nil {
		own = old.copied()
	}
	u.own[namespace] = own
	return own
}

// role applies the change of a role, and reports whether it is a cluster role.
func (u *update) role(c Change[Role]) bool {
	if c.Is != nil {
		u.changing(c.Is.ref.Namespace).roles.Set(c.Is.ref.Name, c.Is)
		return c.Is.ref.Namespace == ""
	}
	u.changing(c.Was.ref.Namespace).roles.Delete(c.Was.ref.Name)
	return c.Was.ref.Namespace == ""
}

// binding applies the change of a binding. Grants are sorted, so that those which only the old
// binding has are found in one pass.
func (u *update) binding(c Change[Binding]) {
	var was, is []grant
	var in *scope
	if c.Was != nil {
		was, in = c.Was.grants, u.changing(c.Was.namespace)
	}
	if c.Is != nil {
		is, in = c.Is.grants, u.changing(c.Is.namespace)
	}
	k := 0
	for i := range was {
		for k < len(is) && is[k].holder.compare(was[i].holder) < 0 {
			k++
		}
		if k == len(is) || is[k].holder != was[i].holder {
			in.remove(&was[i])
		}
	}
	for i := range is {
		in.set(&is[i])
	}
}

// gather collects the rules of all cluster roles that aggregate others.
func (u *update) gather() {
	roles := u.cluster.roles.Values()
	u.gathered = map[string][]*Rule{}
	for _, role := range roles {
		if len(role.aggregates) > 0 {
			u.gathered[role.ref.Name] = gather(role, roles)
		}
	}
}

// gather returns the rules of all that a cluster role aggregates, directly or indirectly.
// Stored roles may select each other in a cycle, so each is visited once.
func gather(role *Role, roles []*Role) []*Rule {
	seen := map[*Role]bool{role: true}
	found := []*Role{role}
	var rules []*Rule
	for i := 0; i < len(found); i++ {
		if len(found[i].aggregates) == 0 {
			rules = append(rules, found[i].rules...)
		}
		for _, candidate := range roles {
			if !seen[candidate] && found[i].selects(candidate) {
				seen[candidate] = true
				found = append(found, candidate)
			}
		}
	}
	return rules
}
