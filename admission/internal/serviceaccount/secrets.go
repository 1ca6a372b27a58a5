package serviceaccount

// pullSecretsField is the field of a pod's image pull secrets.
const pullSecretsField = "spec.imagePullSecrets"

// ephemeral is the field of a pod spec with its ephemeral containers.
const ephemeral = "ephemeralContainers"

// use is a reference to a secret, with the field that holds it.
type use struct{ secret, at string }

// secretsOf returns the references to secrets in a pod spec.
func secretsOf(spec map[string]any) []use {
	var found []use
	note := func(at string, reference any, field string) {
		object, _ := reference.(map[string]any)
		if name, _ := object[field].(string); name != "" {
			found = append(found, use{name, at})
		}
	}
	for _, v := range objects(spec["volumes"]) {
		note("spec.volumes", v["secret"], "secretName")
		projected, _ := v["projected"].(map[string]any)
		for _, source := range objects(projected["sources"]) {
			note("spec.volumes", source["secret"], "name")
		}
	}
	for _, list := range []string{"initContainers", "containers", ephemeral} {
		for _, c := range objects(spec[list]) {
			for _, variable := range objects(c["env"]) {
				from, _ := variable["valueFrom"].(map[string]any)
				note("spec."+list+".env", from["secretKeyRef"], "name")
			}
			for _, from := range objects(c["envFrom"]) {
				note("spec."+list+".envFrom", from["secretRef"], "name")
			}
		}
	}
	for _, reference := range objects(spec["imagePullSecrets"]) {
		note(pullSecretsField, reference, "name")
	}
	return found
}

// mountable holds the names of the secrets that an account references.
type mountable struct{ pulled, mounted map[string]bool }

func (a *Account) mountable() mountable {
	m := mountable{map[string]bool{}, map[string]bool{}}
	for _, reference := range objects(a.PullSecrets) {
		name, _ := reference["name"].(string)
		m.pulled[name] = true
	}
	for _, own := range a.Secrets {
		m.mounted[own.Name] = true
	}
	return m
}

// allows reports whether the account references a secret that a pod uses.
func (m mountable) allows(u use) bool {
	if u.at == pullSecretsField {
		return m.pulled[u.secret]
	}
	return m.mounted[u.secret]
}

// objects returns the items of a list that are objects.
func objects(list any) []map[string]any {
	items, _ := list.([]any)
	var found []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			found = append(found, object)
		}
	}
	return found
}
