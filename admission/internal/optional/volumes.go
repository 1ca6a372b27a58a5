package optional

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// cloudVolume is a kind of volumes that only a cloud knows the zone of.
type cloudVolume struct{ field, id, name, provider string }

func cloudVolumes() []cloudVolume {
	return []cloudVolume{
		{"awsElasticBlockStore", "volumeID", "AWS EBS volume", "unable to build AWS cloud provider for EBS"},
		{"gcePersistentDisk", "pdName", "GCE PD volume", "unable to build GCE cloud provider for PD"},
		{"azureDisk", "diskName", "AzureDisk volume", "unable to build Azure cloud provider for AzureDisk"},
		{"cinder", "volumeID", "Cinder volume", "unable to build OpenStack cloud provider for Cinder disk"},
		{"vsphereVolume", "volumePath", "vSphere Volume", "unable to build vSphere cloud provider"},
	}
}

// PersistentVolumeLabel keeps volumes that were provisioned, and are labeled with their
// zone and region, on the nodes there. It refuses with Forbidden (403) volumes of a cloud
// without these labels, because there is no cloud to ask.
func PersistentVolumeLabel(v vocabulary.Vocabulary) func(context.Context, *review.Review) error {
	return func(_ context.Context, r *review.Review) error {
		if !r.Is(services.OperationCreate, "", "persistentvolumes") {
			return nil
		}
		object, err := r.Decoded()
		if err != nil {
			return err
		}
		labels := placeOf(object, v)
		if labels == nil {
			return withoutCloud(r, tree.Child(object, "spec"))
		}
		var wanted []any
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			values := []string{labels[key]}
			if strings.HasSuffix(key, "/zone") {
				values = strings.Split(labels[key], "__") // a volume may be in several
				slices.Sort(values)
				if slices.ContainsFunc(values, func(zone string) bool { return strings.TrimSpace(zone) == "" }) {
					return r.Forbid("failed to convert label string for Zone: %s to a Set", labels[key])
				}
				values = slices.Compact(values)
			}
			wanted = append(wanted, map[string]any{"key": key, "operator": "In", "values": tree.ListOf(values)})
		}
		if require(tree.Object(object, "spec"), labels, wanted) {
			r.Changed()
		}
		return nil
	}
}

// placeOf returns the zone and the region of a volume that was provisioned; nil when it
// was not, or lacks one of them.
func placeOf(object map[string]any, v vocabulary.Vocabulary) map[string]string {
	if tree.Child(object, "metadata", "annotations")[v.Qualified("pv", "provisioned-by")] == nil {
		return nil
	}
	labels := tree.Child(object, "metadata", "labels")
	for _, domain := range []string{"topology", "failure-domain.beta"} {
		zone, region := v.Qualified(domain, "zone"), v.Qualified(domain, "region")
		inZone, hasZone := labels[zone].(string)
		inRegion, hasRegion := labels[region].(string)
		if hasZone && hasRegion {
			return map[string]string{zone: inZone, region: inRegion}
		}
	}
	return nil
}

// withoutCloud refuses volumes that only a cloud knows, but for placeholders.
func withoutCloud(r *review.Review, spec map[string]any) error {
	for _, kind := range cloudVolumes() {
		source := tree.Child(spec, kind.field)
		if source == nil {
			continue
		}
		id := tree.Text(source, kind.id)
		if id == "placeholder-for-provisioning" && kind.field != "vsphereVolume" {
			return nil
		}
		return r.Forbid("error querying %s %s: %s", kind.name, id, kind.provider)
	}
	return nil
}

// require adds requirements to all terms of the node affinity of a volume, unless one of
// the terms has one of the keys. It reports whether it did.
func require(spec map[string]any, labels map[string]string, wanted []any) bool {
	required := tree.Object(tree.Object(spec, "nodeAffinity"), "required")
	terms := tree.Objects(required, "nodeSelectorTerms")
	for _, term := range terms {
		for _, given := range tree.Objects(term, "matchExpressions") {
			if _, ok := labels[tree.Text(given, "key")]; ok {
				return false
			}
		}
	}
	if len(terms) == 0 {
		terms = []map[string]any{{}}
		required["nodeSelectorTerms"] = []any{terms[0]}
	}
	for _, term := range terms {
		term["matchExpressions"] = append(slices.Clone(tree.List(term, "matchExpressions")), wanted...)
	}
	return true
}
