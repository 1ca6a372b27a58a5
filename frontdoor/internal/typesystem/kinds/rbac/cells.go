package rbac

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

func showRoleReference(o *cell.Object) any {
	role := o.Get("roleRef")
	return role.Get("kind").String() + "/" + role.Get("name").String()
}

func subjects(o *cell.Object, kind string) any {
	return cell.Join(o.Get("subjects"), ", ", func(s rawjson.Value) string {
		if !s.Get("kind").Is(kind) {
			return ""
		}
		if namespace := s.Get("namespace").String(); namespace != "" {
			return namespace + "/" + s.Get("name").String()
		}
		return s.Get("name").String()
	})

}

// showSubjectUsers returns the names of the bound users.
func showSubjectUsers(o *cell.Object) any { return subjects(o, "User") }

// showSubjectGroups returns the names of the bound groups.
func showSubjectGroups(o *cell.Object) any { return subjects(o, "Group") }

// showSubjectAccounts returns the namespaces and names of the bound ServiceAccounts.
func showSubjectAccounts(o *cell.Object) any { return subjects(o, "ServiceAccount") }
