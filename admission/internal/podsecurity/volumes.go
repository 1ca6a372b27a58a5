package podsecurity

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// kindOf returns the kind of a volume, which is the name of the field that describes it;
// cephfs is the one that policies spell in another way.
func kindOf(v *corev1.Volume) string {
	raw, err := json.Marshal(v.VolumeSource)
	var sources map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &sources) != nil || len(sources) != 1 {
		return ""
	}
	kind := slices.Collect(maps.Keys(sources))[0]
	if kind == "cephfs" {
		return "cephFS"
	}
	return kind
}

// volumes checks the volumes of the pod.
func (c *check) volumes() (wrong field.ErrorList) {
	s := &c.policy.Spec
	mounts := c.writableMounts()
	for i := range c.pod.Spec.Volumes {
		v, at := &c.pod.Spec.Volumes[i], field.NewPath("spec", "volumes").Index(i)
		kind := kindOf(v)
		if kind == "" {
			wrong = append(wrong, field.Invalid(at, kind, "unknown volume type for volume: "+v.Name))
			continue
		}
		if !slices.Contains(s.Volumes, "*") && !slices.Contains(s.Volumes, kind) &&
			(kind != "projected" || !slices.Contains(s.Volumes, "secret") || !c.onlyToken(v.Projected)) {
			wrong = append(wrong, field.Invalid(at, kind, kind+" volumes are not allowed to be used"))
			continue
		}
		switch {
		case v.HostPath != nil:
			allowed, readOnly := s.hostPath(v.HostPath.Path)
			if !allowed {
				wrong = append(wrong, field.Invalid(at.Child("hostPath", "pathPrefix"), v.HostPath.Path, "is not allowed to be used"))
			} else if readOnly {
				for _, mount := range mounts[v.Name] {
					wrong = append(wrong, field.Invalid(mount.Child("readOnly"), false, "must be read-only"))
				}
			}
		case v.FlexVolume != nil:
			if allowed := s.AllowedFlexVolumes; len(allowed) > 0 && !slices.ContainsFunc(allowed, func(d driver) bool { return d.Driver == v.FlexVolume.Driver }) {
				wrong = append(wrong, field.Invalid(at.Child("driver"), v.FlexVolume.Driver, "Flexvolume driver is not allowed to be used"))
			}
		case v.CSI != nil:
			if allowed := s.AllowedCSIDrivers; len(allowed) > 0 && !slices.ContainsFunc(allowed, func(d driver) bool { return d.Name == v.CSI.Driver }) {
				wrong = append(wrong, field.Invalid(at.Child("csi", "driver"), v.CSI.Driver, "Inline CSI driver is not allowed to be used"))
			}
		}
	}
	return wrong
}

// writableMounts returns where containers mount volumes writable, by volume.
func (c *check) writableMounts() map[string][]*field.Path {
	mounts := map[string][]*field.Path{}
	for _, container := range containers(c.pod) {
		path := field.NewPath("spec", container.list).Index(container.index)
		for i, mount := range container.mounts {
			if !mount.ReadOnly {
				mounts[mount.Name] = append(mounts[mount.Name], path.Child("volumeMounts").Index(i))
			}
		}
	}
	return mounts
}

// hostPath reports whether a path of the host may be mounted, and whether that has to be
// read-only. A policy that lists no paths allows all.
func (s *spec) hostPath(path string) (allowed, readOnly bool) {
	if len(s.AllowedHostPaths) == 0 {
		return true, false
	}
	path = strings.TrimSuffix(path, "/")
	for _, p := range s.AllowedHostPaths {
		prefix := strings.TrimSuffix(p.PathPrefix, "/")
		if path != prefix && !strings.HasPrefix(path, prefix+"/") {
			continue
		}
		if !p.ReadOnly {
			return true, false
		}
		allowed, readOnly = true, true
	}
	return allowed, readOnly
}

// onlyToken reports whether a projected volume has no more than the token of the account
// that pods get.
func (c *check) onlyToken(v *corev1.ProjectedVolumeSource) bool {
	return !slices.ContainsFunc(v.Sources, func(s corev1.VolumeProjection) bool {
		token, config, downward := s.ServiceAccountToken, s.ConfigMap, s.DownwardAPI
		switch {
		case token == nil && config == nil && downward == nil, s.Secret != nil,
			token != nil && (token.Path != "token" || token.Audience != ""),
			config != nil && config.Name != c.vocabulary.RootCertificate():
			return true
		}
		return downward != nil && slices.ContainsFunc(downward.Items, func(item corev1.DownwardAPIVolumeFile) bool {
			return item.Path != "namespace" || item.FieldRef == nil || item.FieldRef.APIVersion != "v1" || item.FieldRef.FieldPath != "metadata.namespace"
		})
	})
}
