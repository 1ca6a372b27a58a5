package corpus

import "github.com/portico-platform/portico/test/compare/internal/openapi"

// manifestsOf returns the hand-written manifests of a kind: those of its version, or else
// those of another version of the group.
func manifestsOf(k openapi.Kind, all map[openapi.Kind][]object) []object {
	if written := all[k]; len(written) > 0 {
		return written
	}
	for _, version := range []string{"v1", "v2", "v1beta1", "v1beta2"} {
		var own []object
		for _, o := range all[openapi.Kind{Group: k.Group, Version: version, Kind: k.Kind}] {
			own = append(own, with(o, func(o object) { o["apiVersion"] = apiVersion(k) }))
		}
		if own != nil {
			return own
		}
	}
	return nil
}

func apiVersion(k openapi.Kind) string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// setManifests sets the manifests of a kind: the hand-written ones, or one generated from
// its required fields.
func (w *walker) setManifests(k *Kind, written []object) {
	if len(written) > 0 {
		k.minimal = written[0]
		if len(written) > 1 {
			k.full = written[1]
		}
		return
	}
	k.minimal, _ = w.sample("", w.portico.Of(k.Kind)).(object)
	if k.minimal == nil {
		k.minimal = object{}
	}
	k.minimal["apiVersion"], k.minimal["kind"] = apiVersion(k.Kind), k.Kind.Kind
	child(k.minimal, "metadata")
}
