// Package rbac decides by roles and bindings. It compiles them into an index by
// subject, so that a question costs a few look-ups however many bindings there
// are. An index never changes: whoever keeps it current compiles a new one. Rules
// of aggregated cluster roles are gathered when compiling and never written into
// the stored role. It never reads or writes objects itself. It serves section
// "Authorization notes" of the specification.
package rbac

// Index answers questions by the roles and bindings that it was compiled from.
type Index struct {
	rules  map[Ref][]Rule
	grants map[holder][]grant
}

// holder is who holds a grant, and where. Service accounts are users here.
type holder struct {
	namespace string // empty: in the whole cluster
	group     bool
	name      string
}

// grant is what one binding gives to one of its subjects.
type grant struct {
	role   Ref
	reason string
}

// Compile makes an index of roles and bindings of both scopes.
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

// gather returns the rules of a cluster role and of all that it aggregates,
// directly or through another. Stored roles may select each other in a circle, so
// each is visited once.
func gather(role *Role, roles []*Role) []Rule {
	seen := map[*Role]bool{role: true}
	found := []*Role{role}
	var rules []Rule
	for i := 0; i < len(found); i++ {
		rules = append(rules, found[i].rules...)
		for _, candidate := range roles {
			if candidate.ref.Namespace == "" && !seen[candidate] && found[i].selects(candidate) {
				seen[candidate] = true
				found = append(found, candidate)
			}
		}
	}
	return rules
}
