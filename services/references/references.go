// Package references finds the Secrets, ConfigMaps and PersistentVolumeClaims that pods and
// PersistentVolumes name. Admission and the node authorizer decide by them.
package references

import "github.com/portico-platform/portico/services/tree"

// Resources of the objects that are found.
const (
	Secrets    = "secrets"
	ConfigMaps = "configmaps"
	Claims     = "persistentvolumeclaims"
)

// PullSecrets is the field of a pod with its image pull secrets.
const PullSecrets = "spec.imagePullSecrets"

// Reference names an object.
type Reference struct {
	Resource string
	// Namespace is empty in pods, which use objects of their own namespace.
	Namespace, Name string
	// Field is where it is, without indexes: spec.containers.env.
	Field string
	// Volume is the kind of volume that it is in, for example secret; empty elsewhere.
	Volume string
}

// secretVolumes are the kinds of volumes whose drivers need a Secret, with the field that has
// its name, or an object with its name.
var secretVolumes = [...]struct{ kind, field string }{
	{"azureFile", "secretName"}, {"cephfs", "secretRef"}, {"cinder", "secretRef"}, {"flexVolume", "secretRef"}, {"iscsi", "secretRef"},
	{"rbd", "secretRef"}, {"scaleIO", "secretRef"}, {"storageos", "secretRef"}, {"csi", "nodePublishSecretRef"},
}

// OfPod returns the objects that the spec of a pod names. Empty names are left out, and so are
// the claims that are made for ephemeral volumes.
func OfPod(spec map[string]any) (found []Reference) {
	add := func(resource, field, volume, name string) {
		if name != "" {
			found = append(found, Reference{Resource: resource, Name: name, Field: field, Volume: volume})
		}
	}
	for _, pull := range tree.Objects(spec, "imagePullSecrets") {
		add(Secrets, PullSecrets, "", tree.Text(pull, "name"))
	}
	for _, list := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
		at := "spec." + list
		for _, c := range tree.Objects(spec, list) {
			for _, variable := range tree.Objects(c, "env") {
				add(Secrets, at+".env", "", tree.Text(variable, "valueFrom", "secretKeyRef", "name"))
				add(ConfigMaps, at+".env", "", tree.Text(variable, "valueFrom", "configMapKeyRef", "name"))
			}
			for _, from := range tree.Objects(c, "envFrom") {
				add(Secrets, at+".envFrom", "", tree.Text(from, "secretRef", "name"))
				add(ConfigMaps, at+".envFrom", "", tree.Text(from, "configMapRef", "name"))
			}
		}
	}
	for _, v := range tree.Objects(spec, "volumes") {
		ofPodVolume(v, func(resource, volume, name string) { add(resource, "spec.volumes", volume, name) })
	}
	return found
}

func ofPodVolume(v map[string]any, add func(resource, volume, name string)) {
	add(Secrets, "secret", tree.Text(v, "secret", "secretName"))
	add(ConfigMaps, "configMap", tree.Text(v, "configMap", "name"))
	add(Claims, "persistentVolumeClaim", tree.Text(v, "persistentVolumeClaim", "claimName"))
	for _, source := range tree.Objects(v, "projected", "sources") {
		add(Secrets, "projected", tree.Text(source, "secret", "name"))
		add(ConfigMaps, "projected", tree.Text(source, "configMap", "name"))
	}
	for _, s := range secretVolumes {
		add(Secrets, s.kind, tree.Text(v, s.kind, s.field))
		add(Secrets, s.kind, tree.Text(v, s.kind, s.field, "name"))
	}
}

// OfVolume returns the Secrets that nodes need for a PersistentVolume, by its spec. Those that
// only controllers need are left out. Without a namespace, a Secret is in that of the claim.
func OfVolume(spec map[string]any) (secrets []Reference) {
	add := func(kind, name, namespace string) {
		if name == "" {
			return
		}
		if namespace == "" {
			namespace = tree.Text(spec, "claimRef", "namespace")
		}
		secrets = append(secrets, Reference{Resource: Secrets, Namespace: namespace, Name: name, Field: "spec." + kind, Volume: kind})
	}
	for _, s := range secretVolumes {
		source := tree.Child(spec, s.kind)
		add(s.kind, tree.Text(source, s.field), tree.Text(source, "secretNamespace"))
		add(s.kind, tree.Text(source, s.field, "name"), tree.Text(source, s.field, "namespace"))
	}
	for _, field := range [...]string{"nodeStageSecretRef", "nodeExpandSecretRef"} {
		add("csi", tree.Text(spec, "csi", field, "name"), tree.Text(spec, "csi", field, "namespace"))
	}
	return secrets
}
