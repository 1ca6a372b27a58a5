package pods

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

const (
	taken       = "must be unique"
	takenMount  = "must not already exist in volumeMounts"
	takenDevice = "must not already exist in volumeDevices"
)

// mounts checks that mounted volumes exist and that mount paths are unique.
func mounts(c *rules.Check, container map[string]any, volumes map[string]map[string]any, at *field.Path) {
	all := rules.Objects(container, "volumeMounts")
	if len(all) == 0 {
		return
	}
	at = at.Field("volumeMounts")
	seen := map[string]bool{}
	deviceNames, devicePaths := valuesOf(container, "volumeDevices", "name"), valuesOf(container, "volumeDevices", "devicePath")
	for i, mount := range all {
		where := at.Item(i)
		name, path := rules.Text(mount, "name"), rules.Text(mount, "mountPath")
		if volumes[name] == nil {
			c.NotFound(where.Field("name"), name)
		}
		if seen[path] && path != "" {
			c.Invalid(where.Field("mountPath"), path, taken)
		}
		seen[path] = true
		if deviceNames[name] {
			c.Invalid(where.Field("name"), name, takenDevice)
		}
		if devicePaths[path] {
			c.Invalid(where.Field("mountPath"), path, "must not already exist as a path in volumeDevices")
		}
		if rules.Text(mount, "subPath") != "" && rules.Text(mount, "subPathExpr") != "" {
			c.Invalid(where.Field("subPathExpr"), mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
		}
		if mount["mountPropagation"] == "Bidirectional" && rules.Object(container, "securityContext")["privileged"] != true {
			c.Forbidden(at.Field("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers")
		}
	}
}

// devices checks that volume devices refer to claims and that device paths are unique.
func devices(c *rules.Check, container map[string]any, volumes map[string]map[string]any, at *field.Path) {
	all := rules.Objects(container, "volumeDevices")
	if len(all) == 0 {
		return
	}
	names, paths := map[string]bool{}, map[string]bool{}
	mountNames, mountPaths := valuesOf(container, "volumeMounts", "name"), valuesOf(container, "volumeMounts", "mountPath")
	for i, device := range all {
		where := at.Field("volumeDevices").Item(i)
		name, path := rules.Text(device, "name"), rules.Text(device, "devicePath")
		switch volume := volumes[name]; {
		case volume == nil:
			c.NotFound(where.Field("name"), name)
		case volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil:
			c.Invalid(where.Field("name"), name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if names[name] {
			c.Invalid(where.Field("name"), name, taken)
		}
		if mountNames[name] {
			c.Invalid(where.Field("name"), name, takenMount)
		}
		switch {
		case path == "":
		case paths[path]:
			c.Invalid(where.Field("devicePath"), path, taken)
		case slices.Contains(strings.Split(path, "/"), ".."):
			c.Invalid(where.Field("devicePath"), path, "can not contain backsteps ('..')")
		}
		if mountPaths[path] {
			c.Invalid(where.Field("devicePath"), path, "must not already exist as a path in volumeMounts")
		}
		names[name], paths[path] = true, true
	}
}

// valuesOf returns the values of a string member of a list's items; nil for an empty list.
func valuesOf(container map[string]any, list, member string) map[string]bool {
	items := rules.Objects(container, list)
	if len(items) == 0 {
		return nil
	}
	values := make(map[string]bool, len(items))
	for _, item := range items {
		if value := rules.Text(item, member); value != "" {
			values[value] = true
		}
	}
	return values
}
