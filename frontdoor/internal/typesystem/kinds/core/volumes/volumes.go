package volumes

import (
	"fmt"
	"net"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// defaultEmptyDir makes emptyDir the default source.
func defaultEmptyDir(m map[string]any, _ vocabulary.Vocabulary) {
	if _, named := m["name"]; len(m) == 0 || named && len(m) == 1 {
		m["emptyDir"] = map[string]any{}
	}
}

// projectedPaths checks that paths are unique among the sources of a volume, and that each
// source has one type.
func projectedPaths(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{}
	once := func(path, shown string) {
		if path != "" && seen[path] {
			c.Invalid(at, shown, "conflicting duplicate paths")
		}
		seen[path] = true
	}
	for i, source := range rules.Objects(m, "sources") {
		if len(source) > 1 {
			c.Forbidden(at.Field("sources").Item(i), "may not specify more than 1 volume type")
		}
		for _, kind := range [...]string{"secret", "configMap", "downwardAPI"} {
			for _, item := range rules.Objects(rules.Object(source, kind), "items") {
				path, shown := rules.Text(item, "path"), rules.Text(rules.Object(source, kind), "name")
				if kind == "downwardAPI" {
					shown = path
				}
				once(path, shown)
			}
		}
		trusted := rules.Text(rules.Object(source, "clusterTrustBundle"), "path")
		once(trusted, trusted)
	}
}

func emptyDirSizeLimit(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if limit := rules.Quantity(m["sizeLimit"]); limit.Sign() < 0 {
		c.Forbidden(at.Field("sizeLimit"), "SizeLimit field must be a valid resource quantity")
	}
}

// Limits of a token's lifetime in seconds.
const shortestToken, longestToken = 10 * 60, 1 << 32

func tokenLifetime(c *rules.Check, m, _ map[string]any, at *field.Path) {
	at = at.Field("expirationSeconds")
	switch seconds, given := rules.Whole(m["expirationSeconds"]); {
	case !given:
	case seconds < shortestToken:
		c.Invalid(at, seconds, "may not specify a duration less than 10 minutes")
	case seconds > longestToken:
		c.Invalid(at, seconds, "may not specify a duration larger than 2^32 seconds")
	}
}

// volumeSecretName checks that references to Secrets have a name.
func volumeSecretName(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if at.Name == "iscsi" && at.Parent.Name == "" {
		return // a disk of a pod
	}
	for _, name := range [...]string{"secretRef", "nodePublishSecretRef"} {
		if reference := rules.Object(m, name); reference != nil && rules.Text(reference, "name") == "" {
			c.Required(at.Field(name).Field("name"), "")
		}
	}
}

// Formats of the URIs of managed and unmanaged Azure disks.
const (
	managedDisk = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	blobDisk    = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
)

func azureDisk(c *rules.Check, m, _ map[string]any, at *field.Path) {
	form := blobDisk
	if m["kind"] == "Managed" {
		form = managedDisk
	}
	beginning, _, _ := strings.Cut(form, "{")
	if uri := rules.Text(m, "diskURI"); !strings.HasPrefix(uri, beginning) {
		c.NotSupported(at.Field("diskURI"), uri, form)
	}
}

// flockerSet checks that a dataset has either a name or a UUID.
func flockerSet(c *rules.Check, m, _ map[string]any, at *field.Path) {
	name, id := rules.Text(m, "datasetName"), rules.Text(m, "datasetUUID")
	switch {
	case name == "" && id == "":
		c.Required(at, "one of datasetName and datasetUUID is required")
	case name != "" && id != "":
		c.Invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(name, "/") {
		c.Invalid(at.Field("datasetName"), name, "must not contain '/'")
	}
}

// longestTenant limits a tenant, which is a UUID, in bytes.
const longestTenant = 64

func quobyteRegistry(c *rules.Check, m, _ map[string]any, at *field.Path) {
	registries := rules.Text(m, "registry")
	if registries != "" && len(rules.Text(m, "tenant")) > longestTenant {
		c.Required(at.Field("tenant"), fmt.Sprintf("must be a UUID and may not exceed a length of %d characters", longestTenant))
		return
	}
	for address := range strings.SplitSeq(registries, ",") {
		if _, _, err := net.SplitHostPort(address); err != nil && registries != "" {
			c.Invalid(at.Field("registry"), registries, "must be a host:port pair or multiple pairs separated by commas")
		}
	}
}

// flexOptions checks that the keys of options are not in the project's own domains.
func flexOptions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const group = "meta."
	domain, groups := c.Vocabulary.Domain, strings.TrimPrefix(c.Vocabulary.Group(group), group)
	both := domain
	if groups != domain {
		both += " and " + groups
	}
	for key := range rules.Object(m, "options") {
		namespace, _, named := strings.Cut(strings.ToLower(key), "/")
		if named && (under(namespace, domain) || under(namespace, groups)) {
			c.Invalid(at.Field("options").Entry(key), key, both+" namespaces are reserved")
		}
	}
}

func under(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// claimMetadata checks that the template of an ephemeral claim sets only labels and
// annotations: name and namespace follow from the pod.
func claimMetadata(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for name, value := range rules.Object(m, "metadata") {
		if name != "labels" && name != "annotations" && !rules.Empty(value) {
			c.Forbidden(at.Field("metadata").Field(name), "cannot be set")
		}
	}
}

// chapSecret checks that CHAP authentication has a Secret.
func chapSecret(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if (m["chapAuthDiscovery"] == true || m["chapAuthSession"] == true) && m["secretRef"] == nil {
		c.Required(at.Field("secretRef"), "")
	}
}

// fibreChannel checks that a disk is identified by either targetWWNs and lun, or wwids.
func fibreChannel(c *rules.Check, m, _ map[string]any, at *field.Path) {
	targets, ids := len(rules.List(m, "targetWWNs")), len(rules.List(m, "wwids"))
	switch {
	case targets == 0 && ids == 0:
		c.Required(at.Field("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
	case targets > 0 && ids > 0:
		c.Invalid(at.Field("targetWWNs"), m["targetWWNs"], "targetWWNs and wwids can not be specified simultaneously")
	}
	lun, at := rules.Number(m, "lun"), at.Field("lun")
	switch {
	case targets == 0:
	case m["lun"] == nil:
		c.Required(at, "lun is required if targetWWNs is specified")
	case lun < 0 || lun > 255:
		c.Invalid(at, lun, "must be between 0 and 255, inclusive")
	}
}
