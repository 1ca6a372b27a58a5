package pods

import (
	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// emptyDir is what a volume without a source is.
func emptyDir(m map[string]any, _ vocabulary.Vocabulary) {
	if len(m) == 1 && m["name"] != nil {
		m["emptyDir"] = map[string]any{}
	}
}

// projectedPaths: no two sources of a volume write the same file.
func projectedPaths(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	once := func(path string, where *field.Path) {
		if path != "" && seen[path] {
			c.Invalid(where, path, "conflicting duplicate paths")
		}
		seen[path] = true
	}
	for i, source := range rules.Objects(m, "sources") {
		where := at.Field("sources").Item(i)
		for _, kind := range [...]string{"secret", "configMap", "downwardAPI"} {
			for j, item := range rules.Objects(rules.Object(source, kind), "items") {
				once(rules.Text(item, "path"), where.Field(kind).Field("items").Item(j).Field("path"))
			}
		}
		once(rules.Text(rules.Object(source, "serviceAccountToken"), "path"), where.Field("serviceAccountToken").Field("path"))
	}
}

// chapSecret: authentication needs something to authenticate with.
func chapSecret(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if (m["chapAuthDiscovery"] == true || m["chapAuthSession"] == true) && m["secretRef"] == nil {
		c.Required(at.Field("secretRef"), "")
	}
}

// fibreChannel: a disk is known by target and number, or by identifiers.
func fibreChannel(c *rules.Check, m, _ map[string]any, at *field.Path) {
	targets, ids := len(rules.List(m, "targetWWNs")), len(rules.List(m, "wwids"))
	switch {
	case targets == 0 && ids == 0:
		c.Required(at.Field("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
	case targets > 0 && ids > 0:
		c.Invalid(at.Field("targetWWNs"), m["targetWWNs"], "targetWWNs and wwids can not be specified simultaneously")
	case targets > 0 && m["lun"] == nil:
		c.Required(at.Field("lun"), "lun is required if targetWWNs is specified")
	}
}
