package serviceaccount

import (
	"github.com/portico-platform/portico/services/references"
	"github.com/portico-platform/portico/services/tree"
)

// ephemeral is the field of a pod spec with its ephemeral containers.
const ephemeral = "ephemeralContainers"

// mountable holds the names of the secrets that an account references.
type mountable struct{ pulled, mounted map[string]bool }

func (a *Account) mountable() mountable {
	m := mountable{map[string]bool{}, map[string]bool{}}
	for _, item := range a.PullSecrets {
		reference, _ := item.(map[string]any)
		m.pulled[tree.Text(reference, "name")] = true
	}
	for _, own := range a.Secrets {
		m.mounted[own.Name] = true
	}
	return m
}

// allows reports whether a pod of the account may have a reference. Secrets for the drivers
// of volumes are not limited, as in Kubernetes: containers do not see them.
func (m mountable) allows(r references.Reference) bool {
	switch {
	case r.Resource != references.Secrets:
		return true
	case r.Field == references.PullSecrets:
		return m.pulled[r.Name]
	case r.Volume != "" && r.Volume != "secret" && r.Volume != "projected":
		return true
	}
	return m.mounted[r.Name]
}
