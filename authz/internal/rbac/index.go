// Package rbac decides by roles and bindings. It compiles them into an index by
// subject, so that a decision costs a few lookups however many bindings there are. An
// index is immutable: its owner compiles a new one to update it. Rules of aggregated
// cluster roles are gathered at compilation; those stored in such a role are a copy for
// readers and may be old. It reads and writes no objects itself. It serves section "Authorization notes" of the
// specification.
package rbac

// Index is a compiled set of roles and bindings.
type Index struct {
	rules  map[Ref][]Rule
	grants map[holder][]grant
}

// holder is the subject of a grant, and its scope. Service accounts are users here.
type holder struct {
	namespace string // empty: cluster-wide
	group     bool
	name      string
}

// grant is what one binding grants to one of its subjects.
type grant struct {
	role   Ref
	reason string
}

// Compile builds an index from roles and bindings of both scopes.
func Compile(roles []*Role, bindings []*Binding) *Index {
	x := &Index{rules: make(map[Ref][]Rule, len(roles)), grants: make(map[holder][]grant, len(bindings))}
	for _, role := range roles {
		x.rules[role.ref] = role.rules
		if len(role.aggregates) > 0 {
			x.rules[role.ref] = gather(role, roles)
		}
	}
	for _, b := range bindings {
		for i, h := range b.holders {
			x.grants[h] = append(x.grants[h], grant{role: b.role, reason: b.reasons[i]})
		}
	}
	return x
}

// gather returns the rules of all that a cluster role aggregates, directly or indirectly.
// Stored roles may select each other in a cycle, so each is visited once.
func gather(role *Role, roles []*Role) []Rule {
	seen := map[*Role]bool{role: true}
	found := []*Role{role}
	var rules []Rule
	for i := 0; i < len(found); i++ {
		if len(found[i].aggregates) == 0 {
			rules = append(rules, found[i].rules...)
		}
		for _, candidate := range roles {
			if candidate.ref.Namespace == "" && !seen[candidate] && found[i].selects(candidate) {
				seen[candidate] = true
				found = append(found, candidate)
			}
		}
	}
	return rules
}
